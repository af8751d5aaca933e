# Each target sets up what it needs in .venv, from the pinned versions in constraints.txt; Python 3.11+ and make are enough.

PYTHON ?= python3
BIN := .venv/bin
export RIGHTARM_CACHE_DIR ?= $(CURDIR)/.cache/compiled

.PHONY: figure1 reproduce quick test test-slow check bench format clean

figure1: .venv/ready  ## the paper's Figure 1, into results/figure1
	$(BIN)/rightarm reproduce figure1

reproduce: .venv/ready  ## every claim of the paper against simulation, on one page: results/all.html
	$(BIN)/rightarm reproduce all

quick: .venv/ready  ## a smaller Figure 1 in half a minute, into results/figure1-quick
	$(BIN)/rightarm reproduce figure1 --quick

test: check  ## all checks and tests but the slow ones
	$(BIN)/pytest

test-slow: .venv/ready  ## the long ones: all 2^32 words of the noise, 10^10 draws, a million rounds; about ten minutes
	$(BIN)/pytest -m slow

check: .venv/ready  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready  ## speed against others in the same run; ratios go to BENCHMARKS.md by hand
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.policies
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.catoni
	$(BIN)/python -m benchmarks.propensity
	$(BIN)/python -m benchmarks.live
	$(BIN)/python -m benchmarks.sweeps

format: .venv/ready  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## forget everything that can be made again
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --editable '.[lab,dev]'
	touch $@
