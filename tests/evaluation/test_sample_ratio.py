"""The sample-ratio check: no more false alarms than promised, and what goes wrong in practice is found."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from adaptive_logs import softmax_log
from rightarm.evaluation.sample_ratio import draws_of
from rightarm.inference import propensity_bets as inner
from rightarm.logs.log import log_of

ARMS = np.array(["a", "b", "c"])


def log(seed: int, rows: int, law: Any = (0.5, 0.3, 0.2)) -> dict[str, Any]:
    random, chances = np.random.default_rng(seed), np.asarray(law)
    arms = random.choice(chances.size, rows, p=chances)
    return {
        "id": list(range(1, rows + 1)),
        "arm": ARMS[arms].tolist(),
        "propensity": chances[arms].tolist(),
        "allowed": [ARMS[: chances.size].tolist()] * rows,
    }


def naive(columns: dict[str, Any], names: list[str]) -> list[float]:
    """The capital after every row, gambler by gambler and row by row; all arms are there from the first row on."""
    starts, before, waiting = range(3), None, 1 / 4  # the share of those who begin after 300 rows or later
    shares = {(kind, name): inner.FIRST / len(names) / 2 for kind in ("more", "less") for name in names}
    shares |= {(kind, ""): inner.SHARES[kind] for kind in (inner.AGAIN, inner.TURNS, inner.ALL)}
    capital = {
        (kind, name, stake, start): share / inner.STAKES.size / (start + 1) / (start + 2)
        for (kind, name), share in shares.items()
        for stake in inner.STAKES.tolist()
        for start in starts
    }
    history = []
    for t, (arm, p, allowed) in enumerate(zip(columns["arm"], columns["propensity"], columns["allowed"], strict=True)):
        for kind, name, stake, start in capital:
            groups = {
                "more": [name],
                "less": [other for other in allowed if other != name],
                inner.AGAIN: [before],
                inner.TURNS: [other for other in allowed if other != before],
                inner.ALL: allowed,
            }
            group = groups[kind]
            silent = (kind in ("more", "less") and name not in allowed) or (
                kind in (inner.AGAIN, inner.TURNS) and before not in allowed
            )
            if t >= 100 * start and (len(allowed) > 1 or kind == inner.ALL) and not silent:
                capital[kind, name, stake, start] *= 1 + stake * ((arm in group) / p / len(group) - 1)
        before = arm
        history.append(sum(capital.values()) + waiting * sum(shares.values()))
    return history


def test_the_capital_is_that_of_all_gamblers() -> None:
    rows = log(1, 250)
    for t in (5, 17, 130):  # rows of two arms, or of one
        rows["allowed"][t] = sorted({rows["arm"][t], "a"})
    history = naive(rows, ["a", "b", "c"])
    for n in (1, 10, 100, 101, 250):
        part = {name: column[:n] for name, column in rows.items()}
        found = ra.evaluation.sample_ratio(part, arms="abc")
        assert found.e_value == pytest.approx(max(1.0, *history[:n]), rel=1e-9)
        assert found.p_value == pytest.approx(1 / found.e_value)


def test_the_mean_capital_of_fair_draws_is_at_most_one() -> None:
    """Over all sequences of 4 rows of three arms, of which the third comes later."""
    total, law = 0.0, {"a": 0.5, "b": 0.3, "c": 0.2}
    for arms in itertools.product("abc", repeat=4):
        if arms[0] == "c":
            continue
        chances = [law[arms[0]] / 0.8, *(law[arm] for arm in arms[1:])]
        allowed = [["a", "b"], *([["a", "b", "c"]] * 3)]
        columns = {"arm": list(arms), "propensity": chances, "allowed": allowed}
        _, draws = draws_of(log_of(columns, needed=("arm", "propensity")), None)
        _, players = inner.gamblers(draws)
        total += math.prod(chances) * sum(math.exp(player.capital[-1]) for player in players)
    assert total == pytest.approx(inner.FIRST + inner.LATER / 2 + sum(inner.SHARES.values()))
    assert total <= 1


@pytest.mark.full
def test_false_alarms_under_continuous_looking() -> None:
    """Adaptive logs, looked at after every row: an alarm in 5% of them at most."""
    runs, confidence = 600, 0.95
    alarms = sum(
        ra.evaluation.sample_ratio(softmax_log(seed, 400), confidence=confidence).alarm for seed in range(runs)
    )
    even = sum(
        ra.evaluation.sample_ratio(log(seed, 300, (0.5, 0.5)), confidence=confidence).alarm for seed in range(runs)
    )
    limit = runs * 0.05 + 4.5 * math.sqrt(runs * 0.05 * 0.95)
    assert alarms <= limit
    assert even <= limit


def test_a_stale_cache_is_found() -> None:
    """Every decision is shown four times; each arm comes as often as it should in the long run."""
    rows = log(2, 200)
    stale = {name: [value for value in column for _ in range(4)] for name, column in rows.items()} | {
        "id": list(range(800))
    }
    found = ra.evaluation.sample_ratio(stale)
    assert found.alarm
    assert found.row is not None
    assert found.row < 200
    assert "followed by itself more often" in found.findings[0]


def test_a_cache_that_is_stale_from_some_row_on() -> None:
    rows = log(3, 1_000)
    for name in ("arm", "propensity"):
        rows[name][600:] = [rows[name][600]] * 400
    found = ra.evaluation.sample_ratio(rows)
    assert found.alarm
    assert found.row is not None
    assert 600 < found.row < 630


def test_a_broken_client_is_found() -> None:
    """It shows b where c was chosen, with c's propensity."""
    rows = log(4, 2_000)
    rows["arm"] = ["b" if arm == "c" else arm for arm in rows["arm"]]
    found = ra.evaluation.sample_ratio(rows)
    assert found.alarm
    assert set(found.arms) >= {"b", "c"}
    assert any("b came more often" in text for text in found.findings)


def test_lost_rows_of_one_arm_are_found() -> None:
    rows = log(5, 6_000)
    kept = [i for i, arm in enumerate(rows["arm"]) if arm != "a" or i % 3]
    found = ra.evaluation.sample_ratio({name: [column[i] for i in kept] for name, column in rows.items()})
    assert found.alarm
    assert "a" in found.arms


def test_arms_in_turn_are_found() -> None:
    found = ra.evaluation.sample_ratio({"arm": ["a", "b", "c"] * 100, "propensity": [1 / 3] * 300})
    assert found.alarm
    assert any("in turn" in text for text in found.findings)


def test_a_duplicated_log_is_found() -> None:
    rows = softmax_log(6, 500)
    twice = {name: [*column, *column] for name, column in rows.items()}
    assert any("rows 501 to 600 repeat rows 1 to 100" in text for text in ra.evaluation.sample_ratio(twice).findings)
    ids = log(7, 500) | {"id": [*range(1, 401), *range(301, 401)]}
    assert ra.evaluation.sample_ratio(ids).findings == ("100 ids came more than once, the first is 301",)
    each = {name: [value for value in column for _ in range(2)] for name, column in log(8, 300).items()}
    assert any("300 ids came more than once" in text for text in ra.evaluation.sample_ratio(each).findings)


def test_equal_rows_that_chance_explains_are_none() -> None:
    """A policy that is nearly sure shows the same arm for long."""
    sure = {"arm": ["a"] * 3_000, "propensity": [0.999] * 3_000, "allowed": [["a", "b"]] * 3_000}
    assert not ra.evaluation.sample_ratio(sure).alarm
    certain = {"arm": ["a", "b"] * 500, "propensity": [1.0] * 1_000}
    assert ra.evaluation.sample_ratio(certain).p_value == 1


def test_propensities_of_a_larger_choice_are_found() -> None:
    """Propensities of 1/10 each where there are two arms only."""
    rows = log(9, 200, (0.5, 0.5)) | {"propensity": [0.1] * 200}
    assert ra.evaluation.sample_ratio(rows).alarm


def test_the_log_of_a_bandit_is_in_order(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    with ra.Bandit(["a", "b"], ra.Boltzmann(0.2), seed=3, log=tmp_path / "log.jsonl") as bandit:
        for t in range(600):
            if t == 300:
                bandit.add_arm("c")
            decision = bandit.ask()
            if random.random() < 0.9:
                bandit.tell(decision, float(random.random() < 0.3))
    found = ra.evaluation.sample_ratio(tmp_path / "log.jsonl")
    assert not found.alarm
    assert found.rows == 600
    assert str(found).startswith("arms came as their propensities say\n  rows                  600\n")


def test_long_logs_are_looked_at_sometimes() -> None:
    rows = log(10, inner.LOOKS + 1_007, (0.5, 0.5))
    found = ra.evaluation.sample_ratio(rows)
    assert (found.rows, found.alarm) == (inner.LOOKS + 1_007, False)
    rows["arm"][4_000:] = ["a"] * (len(rows["arm"]) - 4_000)
    row = ra.evaluation.sample_ratio(rows).row
    assert row is not None
    assert 4_000 < row <= 4_100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propensity": [0.5, 0.0]}, "propensity of row 2 must be above 0 and at most 1, got 0.0"),
        ({"allowed": [["a"], ["a"]]}, r"allowed must have the arm 'b' of row 2 and every arm once, got \['a'\]"),
        ({"allowed": [["a", "b"]]}, r"the columns of a log must be of one length, got \[1, 2\]"),
    ],
)
def test_wrong_logs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ra.evaluation.sample_ratio({"arm": ["a", "b"], "propensity": [0.5, 0.5], **change})
