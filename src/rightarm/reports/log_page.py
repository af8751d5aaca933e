"""The report of a live bandit's log: one page for the people who decide what comes of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from rightarm import inference
from rightarm.display import counted, number, percent, signed
from rightarm.evaluation.lift import UNIFORM, Lift, lift
from rightarm.evaluation.sample_ratio import SampleRatio, sample_ratio
from rightarm.evaluation.targets import warning_of
from rightarm.experiments.runner import duration
from rightarm.files import write_whole
from rightarm.inference import Best, Difference, Means
from rightarm.inference.sequences import check_confidence
from rightarm.logs.events import Changed
from rightarm.logs.log import UNKNOWN, Log, log_of
from rightarm.logs.rows import Rows, features_of, read_rows
from rightarm.reports.charts import HEIGHT, MARGIN, REST, Chart, Trace, Value, named_rows, numbers, render
from rightarm.reports.charts import text as label
from rightarm.simulation.panels import Style, styles_of
from rightarm.types import F64, I64

BINS = 40  # of the time, in the chart of shares
DIGITS = 3  # of numbers in tables; nobody needs more of an interval
MOST_COLOURS = 8  # arms that have a colour of their own there
QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "longest": 1.0}
LEFT_OUT = {
    "open": "decisions whose window of reward is open, with or without a reward so far",
    "pending": "decisions that wait for a reward",
    "closed": "decisions that were closed without a reward",
    "observation": "rewards that no decision led to",
    "late": "rewards that came after their time",
    "correction": "rewards that were corrected later; the last value counts",
    "policy": "changes of the policy",
}
READING = (
    "Intervals hold at any time: one may look at this page every day, and stop when one likes, and the promise stays "
    "{sure}. Each of them may be wrong in {wrong} of all bandits, ever. Estimates of an arm take its mean reward to be "
    "the same all the time; the lift does not, and is the one to trust where the world changes. All of it needs "
    "rewards from {low} to {high}, and that what comes late is neither better nor worse than what comes soon."
)
WAITING_HELPS_NOBODY = (
    "A decision counts on this page when its window of reward has closed, and silence counts then. So an arm that is "
    "answered sooner looks no better for it."
)
SLOWER_ARMS = (
    "Where arms differ much here, and rewards are learned as they come, the slower arm looks worse than it is, or "
    "better, until all its rewards are in."
)
OF_MEANS = "the arm’s mean minus that of {arm}"
OVER_CONTEXTS = "the difference from {arm}, weighted by propensities, over all contexts"
BY_CONTEXT = "that depends on the context by which this bandit decides; differences below are over all contexts"
READING_CONTEXTS = (
    " This bandit decides by contexts: it shows arms to different people, so the mean of an arm is that of the "
    "decisions where it was chosen, and does not compare it with others. Differences weigh decisions by their "
    "propensities."
)


def log_report(
    log: Any,
    path: str | os.PathLike[str],
    *,
    control: Hashable = None,
    reward_range: tuple[float, float] | None = None,
    missing: float | None = None,
    confidence: float = 0.95,
    floor: float | None = None,
    title: str | None = None,
) -> Path:
    """Write one page about a live bandit's log, for people who need not know how bandits work; it needs no network.

    It has the best arm, as far as it can be told; shares over time; every arm with its interval and its difference from
    the control; what the bandit earned beyond a uniform choice and beyond the control; whether arms came as their
    propensities say; how long rewards took; and what was left out.

    Parameters
    ----------
    log : str, path, Log or frame
        A path, of a log or of a bandit's folder, a `Log`, or a frame such as `read_log` gives.
    path : str or path
        The file of the page.
    control : hashable, optional
        The arm that others are compared with; the bandit's control, or else the first arm, unless given.
    reward_range : pair of float, optional
        The smallest and the largest reward; the bandit's, or else 0 and 1, unless given.
    missing : float, optional
        The reward of decisions that have none, which are left out without it. Those whose reward window is open are
        left out in any case.
    confidence : float
        The confidence of each interval.
    floor : float, optional
        A propensity that no arm could fall below; the lift is narrower with it. The bandit's unless given.
    title : str, optional
        The title of the page.

    Returns
    -------
    Path
        The path of the page.

    Examples
    --------
    >>> import tempfile
    >>> arms, chances, rewards = ["a", "b", "b", "b"], [0.25, 0.75, 0.75, 0.75], [0, 1, 1, 1]
    >>> log = {"arm": arms * 300, "propensity": chances * 300, "reward": rewards * 300}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "b is the best of 2 arms" in log_report(log, folder + "/week.html").read_text()
    True
    """
    default_title = f"Report of {Path(log).name}" if isinstance(log, str | os.PathLike) else "Report of a log"
    log = log_of(log)
    rows = read_rows(log, reward_range=reward_range, missing=missing, floor=floor)
    options: _LiftOptions = {
        "missing": missing,
        "confidence": check_confidence(confidence),
        "reward_range": rows.reward_range,
        "floor": rows.floor,
    }
    page = _Page(log, rows, log.settings.control if control is None else control, options)
    path = Path(path)
    write_whole(path, page.render(title or default_title).encode())
    return path


def _left_out(log: Log) -> Counter[str]:
    """Count what does not stand among the rewards of decisions."""
    kinds = log.events.copy()
    kinds["policy"] = sum(isinstance(change, Changed) and change.policy is not None for change in log.changes)
    without = np.isnan(log.rewards)
    if log.open is not None:
        kinds["open"] = int(log.open.sum())
    else:
        kinds["pending"] = int((without if log.answer_times is None else without & np.isnan(log.answer_times)).sum())
    kinds["closed"] = int(without.sum()) - kinds["pending"] - kinds["open"]
    return kinds


def _is_contextual(log: Log) -> bool:
    """Say whether arms were chosen by contexts."""
    return "context" in log.more or features_of(log.policy)[0] is not None


def _delays_of(log: Log) -> F64 | None:
    """Return how many seconds each reward took; NaN where none came, or silence counts as one."""
    if log.times is None or log.answer_times is None:
        return None
    return np.where(np.isnan(log.rewards), np.nan, log.answer_times - log.times)


class _LiftOptions(TypedDict):
    """The options of `lift`."""

    missing: float | None
    confidence: float
    reward_range: tuple[float, float]
    floor: float | None


class _Page:
    """Everything that the page shows."""

    def __init__(self, log: Log, rows: Rows, control: Hashable, options: _LiftOptions) -> None:
        self.log = log
        self.rows = rows
        self.options = options
        self.range = rows.reward_range
        self.confidence = options["confidence"]
        self.is_contextual = _is_contextual(log)
        self.kinds = _left_out(log)
        self.names = _ordered(log, rows.names)
        self.place = {name: i for i, name in enumerate(rows.names)}
        self.control = self._named(control)
        self.role = "the first arm" if control is None else "the control"
        places = {name: i for i, name in enumerate(self.names)}
        self.arms = np.array([places.get(name, -1) for name in log.names])[log.arms]  # of all decisions
        self.statistics = self._statistics()
        self.means: Means = inference.means(*self.statistics, self.range, self.confidence)
        self.check: SampleRatio = sample_ratio(log)
        self.warning = warning_of(rows)

    def _named(self, control: Hashable) -> Hashable:
        """Find the control among the arms; by its text, since a command line knows no other."""
        if control is None:
            return self.names[0]
        found = [name for name in self.names if name == control] or [n for n in self.names if str(n) == str(control)]
        if not found:
            raise ValueError(f"control must be one of {', '.join(map(str, self.names))}, got {control!r}")
        return found[0]

    def _statistics(self) -> tuple[F64, F64, F64]:
        """Number, mean and spread of the rewards of each arm."""
        rewards = [self.rows.rewards[self.rows.arms == self.place[name]] for name in self.names]
        counts = np.array([float(values.size) for values in rewards])
        means = np.array([values.mean() if values.size else 0.0 for values in rewards])
        spreads = np.array([((values - mean) ** 2).sum() for values, mean in zip(rewards, means, strict=True)])
        return counts, means, spreads

    def render(self, title: str) -> str:
        low, high = self.range
        sure = f"{100 * self.confidence:g}%"
        wrong = f"{100 - 100 * self.confidence:g}%"
        best = None if self.is_contextual else self._best()
        found = [self._difference(i) for i in range(len(self.names))]
        gaps = [None if gap is None else replace(gap, warning=self.warning) for gap in found]
        reading = READING + READING_CONTEXTS * self.is_contextual
        return render(
            "log.html",
            title=title,
            best=BY_CONTEXT if best is None else str(best),
            decided=best is not None and best.stop,
            lifts=[self._lift_row(UNIFORM), self._lift_row(self.control)],
            check=self.check,
            warning=self.warning,
            against=(OVER_CONTEXTS if self.is_contextual else OF_MEANS).format(arm=f"{self.role}, {self.control}"),
            facts={name: fact for name, fact in self._facts().items() if fact},
            shares=_share_chart([str(name) for name in self.names], self.arms, self.log.times),
            estimates=self._estimates(),
            head=["arm", "decisions", "share", "rewards", "mean", f"{sure}, at any time", f"against {self.role}"],
            arms=[self._arm_row(i, gap) for i, gap in enumerate(gaps)],
            sentences=[str(gap) for gap in gaps if gap is not None and gap.better is not None],
            delays=self._delays(),
            about_delays=SLOWER_ARMS if self.log.open is None else WAITING_HELPS_NOBODY,
            left_out=[[f"{self.kinds[kind]:,}", words] for kind, words in LEFT_OUT.items() if self.kinds[kind]],
            reading=reading.format(sure=sure, wrong=wrong, low=number(low), high=number(high)),
        )

    def _estimates(self) -> Chart:
        where = " where it was chosen" if self.is_contextual else ""
        title = f"Mean reward of each arm{where}, with the interval that holds at any time"
        return _estimate_chart(title, [str(name) for name in self.names], self.arms, self.statistics[1], self.means)

    # Answers.

    def _best(self) -> Best:
        """Find the best of the arms that the last decision could choose."""
        allowed = _arms_of(self.log, -1)
        candidates = [i for i, name in enumerate(self.names) if allowed is None or name in allowed]
        counts, means, spreads = (column[candidates] for column in self.statistics)
        names = [str(self.names[i]) for i in candidates]
        found = inference.best(counts, means, spreads, self.range, self.confidence, names=names)
        return replace(found, warning=self.warning)

    def _difference(self, arm: int) -> Difference | None:
        pair = [arm, self.names.index(self.control)]
        if pair[0] == pair[1]:
            return None
        names = (str(self.names[arm]), str(self.control))
        if self.is_contextual:
            return self._weighted(names, [self.place[self.names[i]] for i in pair])
        counts, means, spreads = (column[pair] for column in self.statistics)
        return inference.difference(counts, means, spreads, self.range, self.confidence, names=names)

    def _weighted(self, names: tuple[str, str], pair: list[int]) -> Difference:
        """Estimate the difference of two arms over the decisions that could choose both, by propensities."""
        rows = self.rows
        first, second = pair
        could_choose = np.ones(rows.arms.size, dtype=bool)
        if rows.allowed is not None:
            could_choose = np.array([first in one and second in one for one in rows.allowed])
        arms = np.where(rows.arms == first, 0, np.where(rows.arms == second, 1, 2))[could_choose]
        return inference.weighted_difference(
            arms,
            rows.propensities[could_choose],
            rows.rewards[could_choose],
            self.range,
            self.confidence,
            floor=self.options["floor"] or 0.0,
            names=names,
        )

    def _lift_row(self, against: Hashable) -> dict[str, str]:
        """Return lift in words; where the log cannot say it, why not."""
        other = "choosing at random" if against == UNIFORM else f"always {against}"
        try:
            found: Lift = lift(self.log, against, **self.options)
        except ValueError as error:
            return {"other": other, "verdict": f"cannot be said: {error}", "interval": "–", "earned": "–", "mark": ""}
        better = found.low > 0
        verdict = "earned more" if better else "earned less" if found.high < 0 else "cannot tell yet"
        return {
            "other": other,
            "verdict": verdict,
            "earned": number(found.other, DIGITS),
            "interval": _span(found.low, found.high),
            "mark": "less" if better else "more" if found.high < 0 else "",
        }

    # Tables.

    def _arm_row(self, arm: int, gap: Difference | None) -> list[Value]:
        counts, means, _ = self.statistics
        decisions = int((self.arms == arm).sum())
        name = str(self.names[arm])
        low = float(self.means.lows[arm])
        high = float(self.means.highs[arm])
        has_rewards = counts[arm] > 0
        return [
            Value(name, name),
            Value(f"{decisions:,}", decisions),
            Value(percent(decisions / self.arms.size), decisions),
            Value(f"{int(counts[arm]):,}", counts[arm]),
            Value(number(means[arm], DIGITS) if has_rewards else "–", means[arm] if has_rewards else None),
            Value(
                f"{number(low, DIGITS)} to {number(high, DIGITS)}" if has_rewards else "–", low if has_rewards else None
            ),
            Value(self.role, None) if gap is None else _gap_value(gap),
        ]

    def _facts(self) -> dict[str, str]:
        asked = self.log.times
        when = "" if asked is None else f"{_day(asked[0])} to {_day(asked[-1])} UTC"
        rewards = f"{self.rows.rewards.size:,}, on average {number(float(self.rows.rewards.mean()))}"
        return {"decisions": f"{self.arms.size:,}", "from": when, "rewards": rewards, "arms": f"{len(self.names):,}"}

    def _delays(self) -> list[list[str]]:
        """Return quantiles of the time from decision to reward, of all arms and of each."""
        delays = _delays_of(self.log)
        if delays is None or np.isnan(delays).all():
            return []
        groups = [("all", delays), *((str(name), delays[self.arms == i]) for i, name in enumerate(self.names))]
        rows = []
        for name, group in groups:
            seconds = group[~np.isnan(group)]
            if seconds.size:
                quantiles = [_seconds(float(np.quantile(seconds, q))) for q in QUANTILES.values()]
                rows.append([name, f"{seconds.size:,}", *quantiles])
        return rows


def _ordered(log: Log, names: Sequence[Hashable]) -> list[Hashable]:
    """Return all arms, those that the first decision could choose first and in its order."""
    return list(dict.fromkeys([*(_arms_of(log, 0) or ()), *names]))


def _arms_of(log: Log, decision: int) -> list[Hashable] | None:
    """Return the arms that a decision could choose, None if the log does not say."""
    number = int(log.allowed[decision])
    return None if number == UNKNOWN else [log.names[i] for i in log.lists[number]]


def _gap_value(gap: Difference) -> Value:
    mark = {True: "less", False: "more", None: ""}[gap.better]
    return Value(_span(gap.low, gap.high), gap.estimate, mark)


def _span(low: float, high: float) -> str:
    return f"{signed(low, DIGITS)} to {signed(high, DIGITS)}"


def _day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def _seconds(seconds: float) -> str:
    return duration(seconds) if seconds >= 60 else f"{number(seconds, 2)} s"


# Charts.


def _share_chart(names: Sequence[str], arms: I64, asked: F64 | None) -> Chart:
    """Draw the share of each arm in the decisions of every part of the time, stacked."""
    places: F64 = np.arange(1.0, arms.size + 1) if asked is None else asked
    edges = np.linspace(places[0], np.nextafter(max(float(places.max()), places[0] + 1e-3), np.inf), BINS + 1)
    which = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, BINS - 1)
    counts = np.zeros((BINS, len(names)))
    np.add.at(counts, (which, arms), 1)
    has_decisions = counts.sum(axis=1) > 0
    shares = counts[has_decisions] / counts[has_decisions].sum(axis=1, keepdims=True)
    x = ((edges[:-1] + edges[1:]) / 2)[has_decisions]
    axis = {"title": {"text": "decision" if asked is None else "time, UTC"}, "automargin": True}
    layout: Trace = {
        "height": HEIGHT - 80,
        "margin": MARGIN,
        "hovermode": "x unified",
        "xaxis": axis | ({"type": "linear", "tickformat": "~s"} if asked is None else {"type": "date"}),
        "yaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "share of decisions"}, "automargin": True},
    }
    chart = Chart("Which arms were chosen, over time", layout, scales=False)
    styles = _styles(names, arms)
    rest = [i for i, name in enumerate(names) if name not in styles]
    points = numbers(x) if asked is None else [_day(time) for time in x]
    for name, style in styles.items():
        chart.add(name, style, [_area(name, points, shares[:, names.index(name)], style.color)], area=True)
    if rest:
        name = f"the other {counted(len(rest), 'arm')}"
        chart.add(name, Style(REST), [_area(name, points, shares[:, rest].sum(axis=1), REST)], area=True)
    return chart


def _styles(names: Sequence[str], arms: I64) -> dict[str, Style]:
    """Return the styles of the arms that were chosen most often, in their order."""
    most = np.argsort(-np.bincount(arms, minlength=len(names)), kind="stable")[:MOST_COLOURS]
    return styles_of(names[i] for i in sorted(most.tolist()))


def _area(name: str, x: Sequence[object], y: F64, color: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "x": list(x),
        "y": numbers(y),
        "stackgroup": "shares",
        "fillcolor": color,
        "line": {"width": 0.5, "color": color},
        "hovertemplate": "%{y:.1%}",
    }


def _estimate_chart(title: str, names: Sequence[str], arms: I64, means: F64, found: Means) -> Chart:
    """Draw every arm's mean reward as a dot, its interval as a line."""
    measured = [i for i in range(len(names)) if not np.isnan(found.lows[i])]
    layout: Trace = {
        "height": 80 + 30 * len(measured),
        "margin": MARGIN,
        "hovermode": "closest",
        "xaxis": {"title": {"text": "mean reward"}, "automargin": True, "tickformat": ",~g", "type": "linear"},
        "yaxis": named_rows([label(names[i]) for i in measured]),
    }
    chart = Chart(title, layout, scales=False)
    styles = _styles(names, arms)
    for place, i in enumerate(measured):
        ends = np.array([found.lows[i], found.highs[i]])
        color = styles.get(names[i], Style(REST)).color
        chart.traces.append(_estimate(names[i], place, mean=means[i], ends=ends, color=color))
    return chart


def _estimate(name: str, place: int, *, mean: float, ends: F64, color: str) -> Trace:
    below, above = numbers(np.abs(ends - mean))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "x": numbers(np.array([mean])),
        "y": [place],
        "error_x": {"type": "data", "symmetric": False, "array": [above], "arrayminus": [below]}
        | {"thickness": 3, "width": 0, "color": color},
        "marker": {"size": 10, "color": color},
        "hovertemplate": f"{label(name)}: {number(mean)}, {number(ends[0])} to {number(ends[1])}<extra></extra>",
        "showlegend": False,
    }
