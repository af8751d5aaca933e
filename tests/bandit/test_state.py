"""A bandit as text: what comes back goes on alike, and what is corrupt or hostile is refused."""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rightarm as ra
import rightarm.bandit.arms
from bandits import BGE, CATONI, HASHABLES, KNOWN, STATE, Clock, arm_rows, column, forgetful, forgetting, told
from rightarm.policies.live_scores import live_policy

PULLS, MEAN, SPREAD = 0, 1, 4  # rows of the table as JSON has it


def test_names_survive_json_with_their_types() -> None:
    again = ra.Bandit.from_json(ra.Bandit(HASHABLES, BGE, seed=1).to_json())
    assert [repr(arm) for arm in column(again, "arm")] == [repr(arm) for arm in HASHABLES]


# JSON.


def lived(
    bandit: ra.Bandit[Any], random: np.random.Generator, decisions: int, pending: list[int]
) -> list[ra.Decision[Any]]:
    """Decisions whose rewards come late, in another order, or never."""
    made = []
    for _ in range(decisions):
        made.append(bandit.ask())
        pending.append(made[-1].id)
        while len(pending) > 8:
            number, reward = pending.pop(random.integers(len(pending))), random.random()
            if random.random() < 0.9:
                bandit.tell(number, reward)
            else:
                bandit.cancel(number)
    return made


def goes_on_alike(bandit: ra.Bandit[Any], before: int, after: int, **given: Any) -> None:
    pending: list[int] = []
    lived(bandit, np.random.default_rng(5), before, pending)
    text = bandit.to_json()
    again = ra.Bandit.from_json(text, **given)
    assert again.to_json() == text
    assert arm_rows(again) == arm_rows(bandit)
    worlds = [np.random.default_rng(6), np.random.default_rng(6)]
    first = lived(bandit, worlds[0], after, list(pending))
    assert lived(again, worlds[1], after, list(pending)) == first
    first_text, second_text = (json.loads(one.to_json()) for one in (bandit, again))
    for state in (first_text, second_text):
        del state["pending"]  # which has the time of each decision, as answers have
        state["answered"] = [[*row[:6], *row[7:]] for row in state["answered"]]
    assert first_text == second_text


@pytest.mark.parametrize("name", KNOWN)
def test_a_reloaded_bandit_decides_as_the_original(name: str) -> None:
    goes_on_alike(ra.Bandit(list("abcd"), KNOWN[name], seed=3), 80, 300)


SETTINGS: dict[str, tuple[ra.Policy, dict[str, Any]]] = {
    "floor": (BGE, {"floor": 0.1}),
    "floor and memory": (ra.EXP3(gamma=0.1), {"floor": 0.1}),
    "window": (BGE, {"window": 30}),
    "window, clock and floor": (ra.UCB(C=0.5), {"window": 30, "floor": 0.01}),
    "discount": (BGE, {"discount": 0.95}),
    "memory in a window": (ra.EXP3(gamma=0.1), {"window": 30}),
    "memory with a discount": (ra.RobustUCB(u=1.0), {"discount": 0.95}),
    "catoni": (CATONI, {"floor": 0.01}),
    "catoni in a window": (CATONI, {"window": 30}),
    "catoni with a discount": (CATONI, {"discount": 0.95}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_reloaded_bandit_keeps_its_settings(name: str) -> None:
    policy, settings = SETTINGS[name]
    bandit = forgetful(list("abcd"), policy, seed=3, **settings)
    bandit.retire_arm("b")
    goes_on_alike(bandit, 80, 300)


@pytest.mark.full
@pytest.mark.parametrize("name", KNOWN)
def test_a_reloaded_bandit_makes_the_same_next_hundred_thousand_decisions(name: str) -> None:
    """Ten thousand for two policies, whose probabilities take ten times as long as those of the others."""
    decisions = 10_000 if name in ("beta thompson", "perturbed by exponential") else 100_000
    goes_on_alike(ra.Bandit(list("abcd"), KNOWN[name], seed=3), 500, decisions)


def test_a_bandit_with_retired_arms_and_a_floor_can_be_reloaded() -> None:
    bandit = told({"a": [1.0], "b": [0.5], "c": [0.0]}, floor=0.3)
    bandit.retire_arm("a")
    bandit.add_arm("d")
    assert arm_rows(ra.Bandit.from_json(bandit.to_json())) == arm_rows(bandit)


def test_json_is_versioned_plain_and_readable_as_bytes() -> None:
    text = told(STATE).to_json()
    state = json.loads(text)
    assert (state["format"], state["version"]) == ("rightarm bandit", 4)
    assert ra.Bandit.from_json(text.encode()).to_json() == text


def test_the_answers_given_before_are_remembered_across_json() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    bandit.ask(3)
    bandit.tell(1, 0.5)
    bandit.cancel(2)
    again = ra.Bandit.from_json(bandit.to_json())
    assert again.tell(1, 0.5) is False
    for number, message in ((1, r"told the reward 0\.5 before"), (2, "cancelled or expired before")):
        with pytest.raises(ValueError, match=message):
            again.tell(number, 1.0)
    assert again.tell(3, 1.0) is True
    assert again.ask().id == 4


def test_a_policy_of_ones_own_that_no_module_has_must_be_given() -> None:
    @ra.policy(noise=ra.noise.Gumbel())
    def own(pulls, mean, z, *, C: float):  # type: ignore[no-untyped-def]
        return mean + C / pulls * z

    text = told(STATE, own(C=1.0)).to_json()
    with pytest.raises(ValueError, match="own"):
        ra.Bandit.from_json(text)
    with pytest.raises(
        ValueError, match=r"policy must be the one of the state, .*own, got own\(C=2\.0\), whose parameters differ"
    ):
        ra.Bandit.from_json(text, policy=own(C=2.0))
    goes_on_alike(told(STATE, own(C=1.0)), 20, 50, policy=own(C=1.0))


# JSON that is corrupt or hostile.


SAMPLES: dict[str, tuple[ra.Policy, dict[str, Any]]] = {  # a policy, and what else the bandit is given
    "window": (forgetting(BGE, window=5), {"floor": 0.1}),
    "memory": (ra.EXP3(gamma=0.2), {}),
    "memory in a window": (forgetting(ra.EXP3(gamma=0.2), window=5), {}),
    "discount": (forgetting(BGE, discount=0.5), {}),
    "catoni": (CATONI, {}),
    "schedule": (ra.Boltzmann(ra.schedules.inverse_log(0.5)), {}),
    "noise": (ra.PerturbedMean(ra.noise.Gaussian(), scale=0.5), {}),
}
KEYS = ["format", "version", "policy", "settings", "arms", "active", "harmful", "status", "least", "events"]
KEYS += ["first_id", "next_id", "pending", "answered", "units", "settled", "observed", "log", "statistics", "key"]


@functools.cache
def sample_text(name: str) -> str:
    """A small state with something in every field; made when a test asks for it, since it has to be compiled."""
    policy, settings = SAMPLES[name]
    bandit = ra.Bandit(["a", ("b", 1)], policy, seed=1, clock=Clock(), **settings)
    lived(bandit, np.random.default_rng(7), 14, [])
    return bandit.to_json()


def sample(name: str) -> Any:
    return json.loads(sample_text(name))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_keys_of_a_state_are_known(name: str) -> None:
    assert list(sample(name)) == KEYS


def deep(levels: int, opening: str, closing: str) -> str:
    return opening * levels + closing * levels


WORDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no format": (lambda s: s.pop("format"), "not the state of a bandit"),
    "another format": (lambda s: s.update(format="rightarm log"), "not the state of a bandit"),
    "a later version": (lambda s: s.update(version=5), "version must be 4, got 5: another version of rightarm"),
    "a text for the version": (lambda s: s.update(version="1"), "version must be 4, got '1'"),
    "no version": (lambda s: s.pop("version"), "version must be 4, got None"),
    "no arms": (lambda s: s.update(arms=[]), "arms"),
    "an arm twice": (lambda s: s.update(arms=["a", "a"]), "'a'"),
    "a list for an arm": (lambda s: s.update(arms=["a", ["b"]]), "arms must be text, numbers or tuples"),
    "a hundred thousand pulls": (lambda s: put(s, PULLS, [1.0] * 100_000), "table must have lists of 2 numbers"),
    "negative pulls": (lambda s: put(s, PULLS, [-1.0, 6.0]), "pulls and spreads must not be negative"),
    "a negative spread": (lambda s: put(s, SPREAD, [-1.0, 1.0]), "pulls and spreads must not be negative"),
    "pulls that are no number": (lambda s: put(s, PULLS, [math.nan, 3.0]), "table must be finite, got nan"),
    "pulls that are no whole numbers": (lambda s: put(s, PULLS, [2.5, 2.5]), "pulls must be whole numbers"),
    "too many pulls": (lambda s: put(s, PULLS, [50.0, 50.0]), "the pulls must be 5.0 in all"),
    "an infinite mean": (lambda s: put(s, MEAN, [math.inf, 3.0]), "table must be finite, got inf"),
    "a mean that is not its sum's": (
        lambda s: put(s, MEAN, [s["statistics"]["table"][MEAN][0] + 0.25, s["statistics"]["table"][MEAN][1]]),
        r"mean must be the sum over the count, .* / \d.0, got",
    ),
    "a row too few": (lambda s: s["statistics"]["table"].pop(), "table must have 5 rows"),
    "a mapping for the table": (lambda s: s["statistics"].update(table={}), "table must have 5 rows"),
    "more rewards than were told": (
        lambda s: s["statistics"].update(told=3),
        "ever must be statistics of 3 rewards of 2 arms",
    ),
    "a floor too high": (lambda s: s["settings"].update(floor=0.6), r"floor must be .*, got 0\.6"),
    "too many flags": (lambda s: s["active"].append(True), "active must have one value"),
    "a flag of one": (lambda s: s.update(active=[1, 0]), "active must be true or false, got 1"),
    "a propensity above 1": (lambda s: first_pending(s).__setitem__(2, 1.5), r"propensity must .*, got 1\.5"),
    "a propensity of 0": (lambda s: first_pending(s).__setitem__(2, 0.0), r"propensity must .*, got 0\.0"),
    "a pending arm unknown": (lambda s: first_pending(s).__setitem__(1, 2), "arm must be one of 2, got 2"),
    "a negative pending arm": (lambda s: first_pending(s).__setitem__(1, -1), "arm must be .*, got -1"),
    "pending and answered": (
        lambda s: s["answered"][0].__setitem__(0, first_pending(s)[0]),
        "must differ, got .* again",
    ),
    "pending twice": (lambda s: s["pending"].append(first_pending(s)), "must differ, got .* again"),
    "answered twice": (lambda s: s["answered"].append(s["answered"][0]), "must differ, got .* again"),
    "a decision of the future": (lambda s: first_pending(s).__setitem__(0, 99), "must be from 1 to 14, got 99"),
    "a decision of no number": (lambda s: first_pending(s).__setitem__(0, "x"), "must be from 1 to 14, got 'x'"),
    "a decision of a fraction": (lambda s: first_pending(s).__setitem__(0, 1.0), r"must be from 1 to 14, got 1\.0"),
    "an answer that is none": (lambda s: s["answered"][0].__setitem__(1, math.nan), "reward must be finite, got nan"),
    "a settled reward of no arm": (lambda s: s.update(settled=[[2, 0.0, 1.0]]), "arm must be one of 2, got 2"),
    "a settled reward that is none": (lambda s: s.update(settled=[[0, math.nan, 1.0]]), "reward must be finite"),
    "more in the window than fits": (
        lambda s: s["statistics"]["recent"].append([1, 0, 1.0]),
        r"recent must be the rewards that count, got \[\d, \d\] by arm",
    ),
    "a key that is none": (lambda s: s.update(key="secret"), "key must be 32 hexadecimal digits$"),
    "a setting that there is not": (lambda s: s["settings"].update(rate=0.5), "rate"),
    "a row that is too short": (lambda s: s["answered"][0].pop(), "answered must have lists of 9 values, got"),
    "an id that is too large": (lambda s: s.update(next_id=1e30), r"next_id must be at most .*, got 1e\+30"),
    "meta that is none": (lambda s: first_pending(s).__setitem__(10, math.nan), "meta must be a mapping, got nan"),
    "another policy's formula": (lambda s: s["policy"].update(code="0" * 16), "has changed since this was saved"),
    "a schedule as policy": (lambda s: s.update(policy=ra.schedules.inverse_log(0.5).specification()), "policy"),
    "a policy's parameter": (lambda s: s["policy"]["parameters"].update(C=-1.0), "C must be positive"),
}


def first_pending(state: dict[str, Any]) -> Any:
    return state["pending"][0]


def put(state: dict[str, Any], row: int, values: list[float]) -> None:
    state["statistics"]["table"][row] = values


@pytest.mark.parametrize(("change", "message"), WORDS.values(), ids=WORDS)
def test_what_is_wrong_with_a_state_is_said(change: Callable[[Any], Any], message: str) -> None:
    state = sample("window")
    assert ra.Bandit.from_json(json.dumps(state)).ask().id == 15  # it was right before
    change(state)
    with pytest.raises(ValueError, match=message):
        ra.Bandit.from_json(json.dumps(state))


TEXTS: dict[str, Any] = {
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "null": "null",
    "NaN": "NaN",
    "bytes that are no text": b"\xff\xfe\xff",
    "deep lists": deep(100_000, "[", "]"),
    "deep mappings": '{"format":' * 100_000 + "1" + "}" * 100_000,
    "nothing at all": None,
    "a pickle": b"\x80\x04\x95",
    "a number of many digits": '{"format": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_that_are_no_state_are_value_errors(text: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ra.Bandit.from_json(text)


def test_deep_nesting_inside_a_state_is_a_value_error() -> None:
    text = json.dumps(sample("window"))
    wrapped = '{"formula": "rightarm:UCB", "parameters": {"C": ' * 300 + "1" + "}}" * 300
    for old, new in (('"a"', deep(300, '{"tuple": [', "]}")), ('"C": 0.5', f'"C": {wrapped}')):
        assert old in text
        with pytest.raises(ValueError, match=r"\w"):
            ra.Bandit.from_json(text.replace(old, new, 1).replace('"b"', '["c"]'))


@pytest.fixture
def trap(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that can be imported and must not be."""
    (tmp_path / "rightarm_trap.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "rightarm_trap"
    imported = "rightarm_trap" in sys.modules
    assert not imported


HOSTILE: dict[str, Callable[[str], Any]] = {
    "a formula": lambda trap: {"formula": f"{trap}:x", "code": "0", "parameters": {}},
    "a law": lambda trap: {"law": f"{trap}:x"},
    "a parameter": lambda trap: sample("window")["policy"] | {"parameters": {"C": {"formula": f"{trap}:x"}}},
    "a parameter's law": lambda trap: sample("window")["policy"] | {"parameters": {"C": {"law": f"{trap}:x"}}},
    "a function that does harm": lambda trap: {"formula": "os:system", "code": "0", "parameters": {"command": "true"}},
    "a class": lambda trap: {"law": "subprocess:Popen"},
    "a name in a name": lambda trap: {"formula": "rightarm.policies.ucb:UCB.__init__", "code": "0", "parameters": {}},
    "a number": lambda trap: {"formula": 5, "code": 5, "parameters": 5},
    "a list": lambda trap: {"formula": [trap], "code": [], "parameters": []},
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_text_never_imports_or_calls_anything(hostile: Callable[[str], Any], trap: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ra.Bandit.from_json(json.dumps(sample("window") | {"policy": hostile(trap)}))


@pytest.mark.parametrize("place", ["policy", "parameter"])
def test_a_law_beside_a_formula_imports_nothing(place: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"rightarm_law_{place}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    policy = sample("window")["policy"]
    both = policy | {"law": f"rightarm_law_{place}:x"}
    wrong = both if place == "policy" else policy | {"parameters": {"C": both}}
    with pytest.raises(ValueError, match=r"\w"):
        ra.Bandit.from_json(json.dumps(sample("window") | {"policy": wrong}))
    imported = f"rightarm_law_{place}" in sys.modules
    assert not imported


def test_attributes_that_are_modules_are_not_imported() -> None:
    script = (
        "import json, sys, rightarm as ra\n"
        "state = json.loads(ra.Bandit(['a', 'b'], ra.UCB(C=1.0)).to_json())\n"
        "state['policy']['formula'] = 'numpy:f2py'\n"
        "before = set(sys.modules)\n"
        "try:\n    ra.Bandit.from_json(json.dumps(state))\n"
        "except ValueError:\n    sys.exit(len({name for name in set(sys.modules) - before if 'f2py' in name}))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, 1.5, -0.0, 1e-320, 1e308, -1e308, 1e200, math.nan, math.inf, -math.inf),
    *(10**30, -(10**30), 10**400, "", "x", "1", "\ud800", "rightarm:UCB", [], [[]], [None], [0] * 1_000, {}, {"x": 1}),
]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree, the root left out."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield (*path, key)
        yield from places(tree[key], (*path, key))


def changed(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    """The tree with nasty values at one place, with nothing there, and with what is there twice."""
    text = json.dumps(tree)
    for value in [*NASTY, "leave out", "twice"]:
        fresh = json.loads(text)
        parent = fresh
        for key in path[:-1]:
            parent = parent[key]
        if value == "leave out":
            del parent[path[-1]]
        elif value == "twice" and isinstance(parent, list):
            parent.insert(path[-1], parent[path[-1]])
        else:
            parent[path[-1]] = value
        yield fresh, f"{path} = {value!r:.30}"


def works(bandit: ra.Bandit[Any]) -> None:
    """Whether a bandit goes on: probabilities are some, decisions are made and learned, and it can be kept again."""
    if all(column(bandit, "retired").values()):
        bandit.restore_arm(arm_rows(bandit)[0]["arm"])
    for _ in range(7):  # more than the window has
        law = bandit.probabilities()
        assert all(0 <= p <= 1 + 1e-9 for p in law.values())
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)
        decision = bandit.ask()
        assert decision.propensity == law[decision.arm] > 0
        assert bandit.tell(decision, 0.5) is True
        assert min(column(bandit, "pulls").values()) >= 0
    waiting = sum(column(bandit, "pending").values())
    assert bandit.expire(1.0, reward=0.5) == waiting - sum(column(bandit, "pending").values())
    assert all(row["pulls"] >= 0 and row["pending"] >= 0 for row in arm_rows(bandit))
    assert str(bandit)
    ra.Bandit.from_json(bandit.to_json())


FUZZED = [(name, key) for name in SAMPLES for key in KEYS if name == "window" or key in ("statistics", "policy")]
TRIED = [row if row[0] == "window" else pytest.param(*row, marks=pytest.mark.full) for row in FUZZED]
EXTREME = (1e-320, 1e200, 1e308)  # of a policy's parameters: see the test of these below


@pytest.fixture
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look up the compiled functions of a policy takes longer than all else in `from_json`."""
    monkeypatch.setattr(rightarm.bandit.arms, "live_policy", functools.cache(live_policy))


@pytest.mark.usefixtures("compiled_once")
@pytest.mark.parametrize(("name", "key"), TRIED)
def test_a_state_with_one_thing_changed_is_refused_or_works(name: str, key: str) -> None:
    right, wrong = sample(name), []
    for path in [(key,), *places(right[key], (key,))]:
        for state, what in changed(right, path):
            if key == "policy" and what.endswith(tuple(f" = {value!r}" for value in EXTREME)):
                continue
            try:
                bandit = ra.Bandit.from_json(json.dumps(state), clock=Clock())
            except ValueError as error:
                wrong += [] if str(error) else [f"{what}: from_json gives no reason"]
                continue
            except Exception as error:
                wrong.append(f"{what}: from_json gives {type(error).__name__} {error}")
                continue
            try:
                works(bandit)
            except Exception as error:
                wrong.append(f"{what}: then {type(error).__name__} {error!s:.80}")
    assert not wrong, "\n".join(wrong)
