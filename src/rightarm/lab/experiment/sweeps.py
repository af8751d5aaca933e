"""Sweeps: the values that an experiment file gives for something, alone or in lists, and their combinations."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightarm.lab.experiment.errors import ExperimentError, a_list, a_table, inside, shown

Numbers = Mapping[str, float]
Label = tuple[str, "int | float | str"]


@dataclass(frozen=True)
class Variant:
    """One of the things a sweep gives: made when the numbers that it mentions are known."""

    labels: tuple[Label, ...]
    make: Callable[[Numbers], Any]
    mentions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sweep:
    """A number of variants, which are made only when it is known that they are not too many."""

    count: int
    variants: Callable[[], Iterable[Variant]]
    mentions: frozenset[str]

    @staticmethod
    def of(*variants: Variant) -> Sweep:
        """A sweep over exactly these variants."""
        return Sweep(len(variants), lambda: variants, frozenset().union(*(each.mentions for each in variants)))

    @staticmethod
    def fixed(value: Any) -> Sweep:
        """Nothing is swept: it gives ``value``."""
        return Sweep.of(Variant((), lambda numbers: value))

    @staticmethod
    def one_after_another(sweeps: Sequence[Sweep]) -> Sweep:
        """The variants of all of them."""
        return Sweep(
            sum(each.count for each in sweeps),
            lambda: itertools.chain.from_iterable(each.variants() for each in sweeps),
            frozenset().union(*(each.mentions for each in sweeps)),
        )

    @staticmethod
    def combined(sweeps: Sequence[Sweep], make: Callable[[list[Any]], Any]) -> Sweep:
        """Every combination, one variant of each; ``make`` puts together what they make."""

        def together(chosen: Sequence[Variant], numbers: Numbers) -> Any:
            return make([each.make(numbers) for each in chosen])

        def variants() -> Iterator[Variant]:
            for chosen in itertools.product(*(tuple(each.variants()) for each in sweeps)):
                labels = tuple(label for each in chosen for label in each.labels)
                mentions = frozenset().union(*(each.mentions for each in chosen))
                yield Variant(labels, functools.partial(together, chosen), mentions)

        mentions = frozenset().union(*(each.mentions for each in sweeps))
        return Sweep(math.prod(each.count for each in sweeps), variants, mentions)

    def labelled(self, prefix: str) -> Sweep:
        """The same with longer names: c in temperature is temperature.c."""

        def variants() -> Iterator[Variant]:
            for each in self.variants():
                yield Variant(tuple((f"{prefix}.{n}", v) for n, v in each.labels), each.make, each.mentions)

        return Sweep(self.count, variants, self.mentions)

    def mapped(self, function: Callable[[Any], Any]) -> Sweep:
        """The same with ``function`` of what is made."""

        def of(variant: Variant, numbers: Numbers) -> Any:
            return function(variant.make(numbers))

        def variants() -> Iterator[Variant]:
            for each in self.variants():
                yield Variant(each.labels, functools.partial(of, each), each.mentions)

        return Sweep(self.count, variants, self.mentions)


@dataclass(frozen=True)
class Entries:
    """How the entries of a table are read."""

    one: Callable[[str, str, Any], Sweep]
    """The sweep of a single value, by its key and its name; more than one variant only if it is a table."""
    check_name: Callable[[str, str, Any], None]
    """Refuses names that are not known."""
    is_value: Callable[[str, list[Any]], bool] = lambda name, values: False
    """Whether a list, by its name, is one value and not several to sweep."""


def columns(key: str, table: Mapping[str, Any], entries: Entries) -> dict[tuple[str, ...], Sweep]:
    """The sweeps of a table: of each entry by itself, of those in `grid`, and of those in `zip` taken together.

    Each makes a dictionary with the values of its names.
    """
    found: dict[str, Sweep] = {}
    for name, value in table.items():
        if name not in ("grid", "zip"):
            entries.check_name(key, name, value)
            found[name] = _entry(inside(key, name), name, value, entries)
    places = dict.fromkeys(found, key)
    for name, values in _lists(key, table, "grid", places, entries).items():
        found[name] = _swept(inside(inside(key, "grid"), name), name, values, entries)
    sweeps: dict[tuple[str, ...], Sweep] = {(name,): by_name([name], [sweep]) for name, sweep in found.items()}
    together = _lists(key, table, "zip", places, entries)
    if together:
        sweeps[tuple(together)] = _zipped(inside(key, "zip"), together, entries)
    return sweeps


def by_name(names: Iterable[str], sweeps: Sequence[Sweep]) -> Sweep:
    """Every combination of ``sweeps``, as dictionaries by ``names``."""
    listed = tuple(names)
    return Sweep.combined(sweeps, lambda made: dict(zip(listed, made, strict=True)))


def rows(key: str, table: Mapping[str, Any], entries: Entries) -> Sweep:
    """Every combination of the sweeps of a table, as dictionaries."""
    return merged(columns(key, table, entries).values())


def merged(sweeps: Iterable[Sweep]) -> Sweep:
    """Every combination of sweeps that make dictionaries, each put together into one dictionary."""
    return Sweep.combined(list(sweeps), lambda made: {name: value for each in made for name, value in each.items()})


def _lists(
    key: str, table: Mapping[str, Any], word: str, places: dict[str, str], entries: Entries
) -> dict[str, list[Any]]:
    """The lists in `grid` or `zip`; ``places`` says where each name was given so far."""
    if word not in table:
        return {}
    own = inside(key, word)
    lists = a_table(own, table[word], "{ C = [0.25, 0.5] }")
    for name, value in lists.items():
        entries.check_name(own, name, value)
        if name in places:
            raise ExperimentError(f"{inside(own, name)}: is given twice, also in {places[name] or 'the file'}")
        places[name] = own
        a_list(inside(own, name), value)
    return lists


def _entry(key: str, name: str, value: Any, entries: Entries) -> Sweep:
    if isinstance(value, list) and (not value or not entries.is_value(name, value)):
        return _swept(key, name, a_list(key, value), entries)
    return entries.one(key, name, value)


def _swept(key: str, name: str, values: list[Any], entries: Entries) -> Sweep:
    return Sweep.one_after_another([_named(f"{key}[{i}]", name, value, i, entries) for i, value in enumerate(values)])


def _named(key: str, name: str, value: Any, index: int, entries: Entries) -> Sweep:
    """One of several values; the labels say which."""

    def variants() -> Iterator[Variant]:
        for each in sweep.variants():
            yield Variant((own, *each.labels), each.make, each.mentions)

    sweep = entries.one(key, name, value)
    own = (name, _label(value, index))
    return Sweep(sweep.count, variants, sweep.mentions)


def _label(value: Any, index: int) -> float | str:
    if isinstance(value, int | float):
        return float(value)  # 1 and 0.5 are to stand in one column
    if isinstance(value, dict):
        value = value.get("use")
    if isinstance(value, str) and len(value) <= 80:
        return value
    numbers = isinstance(value, list) and len(value) <= 12 and all(isinstance(each, float) for each in value)
    return str(value) if numbers else f"{shown(value)} ({index})"


def _zipped(key: str, lists: Mapping[str, list[Any]], entries: Entries) -> Sweep:
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ExperimentError(f"{key}: the lists must be equally long, got {told}")
    return Sweep.one_after_another(
        [
            by_name(
                lists,
                [_named(f"{inside(key, name)}[{i}]", name, values[i], i, entries) for name, values in lists.items()],
            )
            for i in range(next(iter(lengths.values())))
        ]
    )
