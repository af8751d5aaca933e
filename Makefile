# Each target sets up what it needs in .venv, from the pinned versions in constraints.txt; Python 3.11+ and make are enough.
# `make test PYTHON=python3.13` does the same with another Python, in an environment of its own, .venv-3.13.

PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := $(if $(filter file,$(origin PYTHON)),.venv,.venv-$(VERSION))
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
export RIGHTARM_CACHE_DIR ?= $(CURDIR)/.cache/compiled
unexport PYTHONDONTWRITEBYTECODE  # tests start many processes, each of which would compile all modules again

.PHONY: figure1 reproduce quick test test-pythons test-all stress check size bench format clean

figure1: $(VENV)/ready  ## the paper's Figure 1, into results/figure1
	$(BIN)/rightarm reproduce figure1

reproduce: $(VENV)/ready  ## every claim of the paper against simulation, on one page: results/all.html
	$(BIN)/rightarm reproduce all

quick: $(VENV)/ready  ## a smaller Figure 1 in half a minute, into results/figure1-quick
	$(BIN)/rightarm reproduce figure1 --quick

test: check  ## all checks, and the tests that prove each promise once, in a few minutes
	$(BIN)/pytest

test-pythons:  ## `make test` on every other Python from 3.11 on that is installed, pyenv's included
	for version in $(filter-out $(VERSION),3.11 3.12 3.13 3.14); do \
		found=; for python in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python$$version; do \
			if [ -z "$$found" ] && "$$python" -c pass 2> /dev/null; then found=$$python; fi; done; \
		if [ -n "$$found" ]; then $(MAKE) test PYTHON="$$found" || exit 1; \
		else echo "python$$version is not installed: not tested with it"; fi; done

test-all: $(VENV)/ready  ## all other tests: PostgreSQL, Dask, fuzzing, every policy on every problem, all 2^32 words of the noise
	$(BIN)/pytest -m full

TIMES ?= 3
stress: $(VENV)/ready  ## the tests in random order, TIMES times, while other work keeps the cores busy
	$(BIN)/python tests/stress.py $(TIMES)

check: $(VENV)/ready  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

size: $(VENV)/ready  ## files, code lines and what is hard to read, room by room
	$(BIN)/python tools/size.py

bench: $(VENV)/ready  ## speed against others in the same run; ratios go to BENCHMARKS.md by hand
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.policies
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.catoni
	$(BIN)/python -m benchmarks.propensity
	$(BIN)/python -m benchmarks.live
	$(BIN)/python -m benchmarks.contexts
	$(BIN)/python -m benchmarks.logs
	$(BIN)/python -m benchmarks.evaluation
	$(BIN)/python -m benchmarks.sweeps
	$(BIN)/python -m benchmarks.contexts_simulated
	$(BIN)/python -m benchmarks.service

format: $(VENV)/ready  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## forget everything that can be made again
	rm -rf .venv .venv-* .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist

# An environment that was made by another version of Python is made anew.
ifneq ($(VERSION),$(shell sed -n 's/^version = \([0-9]*\.[0-9]*\).*/\1/p' $(VENV)/pyvenv.cfg 2>/dev/null))
CLEAR := --clear
.PHONY: $(VENV)/ready
endif

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(CLEAR) $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --editable '.[lab,client,service,dev]'
	touch $@
