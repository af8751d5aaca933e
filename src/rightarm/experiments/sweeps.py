"""Sweeps: the values that an experiment file gives for something, alone or in lists, and their combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rightarm.experiments.document import ExperimentError, Table, check_list, check_table, inside, shown

Numbers = Mapping[str, float]
Label = tuple[str, int | float | str]
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True)
class Variant(Generic[T_co]):
    """One of the things that a sweep gives: made when the numbers that it mentions have values."""

    labels: tuple[Label, ...]
    make: Callable[[Numbers], T_co]
    mentions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sweep(Generic[T_co]):
    """A number of variants, which are made only when there are not too many of them."""

    count: int
    variants: Callable[[], Iterable[Variant[T_co]]]
    mentions: frozenset[str] = frozenset()

    def relabelled(self, change: Callable[[tuple[Label, ...]], tuple[Label, ...]]) -> Sweep[T_co]:
        """Return the same variants with other labels."""

        def variants() -> Iterator[Variant[T_co]]:
            for variant in self.variants():
                yield Variant(change(variant.labels), variant.make, variant.mentions)

        return Sweep(self.count, variants, self.mentions)

    def prefixed(self, prefix: str) -> Sweep[T_co]:
        """Return the same variants with longer names: c in temperature is temperature.c."""
        return self.relabelled(lambda labels: tuple((f"{prefix}.{name}", value) for name, value in labels))

    def mapped(self, function: Callable[[T_co], T]) -> Sweep[T]:
        """Return a sweep that gives ``function`` of what this one makes."""
        return combined([self], lambda made: function(made[0]))


def sweep_of(variant: Variant[T]) -> Sweep[T]:
    """Return a sweep that has one variant."""
    return Sweep(1, lambda: (variant,), variant.mentions)


def fixed(value: T) -> Sweep[T]:
    """Return a sweep that sweeps nothing: it gives ``value``."""
    return sweep_of(Variant((), lambda numbers: value))


def one_after_another(sweeps: Sequence[Sweep[T]]) -> Sweep[T]:
    """Return a sweep of the variants of all these."""
    return Sweep(
        sum(sweep.count for sweep in sweeps),
        lambda: itertools.chain.from_iterable(sweep.variants() for sweep in sweeps),
        _mentions(sweeps),
    )


def combined(sweeps: Sequence[Sweep[T_co]], join: Callable[[list[T_co]], T]) -> Sweep[T]:
    """Return a sweep of every combination, one variant of each; ``join`` puts together what they make."""

    def variants() -> Iterator[Variant[T]]:
        for chosen in itertools.product(*(tuple(sweep.variants()) for sweep in sweeps)):
            labels = tuple(label for variant in chosen for label in variant.labels)
            yield Variant(labels, _Joined(chosen, join), _mentions(chosen))

    return Sweep(math.prod(sweep.count for sweep in sweeps), variants, _mentions(sweeps))


@dataclass(frozen=True)
class _Joined(Generic[T_co, T]):
    """Makes one thing of what several variants make."""

    chosen: Sequence[Variant[T_co]]
    join: Callable[[list[T_co]], T]

    def __call__(self, numbers: Numbers) -> T:
        return self.join([variant.make(numbers) for variant in self.chosen])


def _mentions(parts: Iterable[Sweep[T] | Variant[T]]) -> frozenset[str]:
    return frozenset[str]().union(*(part.mentions for part in parts))


# Tables.


@dataclass(frozen=True)
class Entries:
    """Says how the entries of a table are read."""

    read: Callable[[str, str, object], Sweep[object]]
    """Reads a single value, by its key and its name; it has more than one variant only if it is a table."""
    check_name: Callable[[str, str, object], None]
    """Refuses a name that the table cannot have."""
    is_value: Callable[[str, list[object]], bool] = lambda name, values: False
    """Returns whether a list, by its name, is one value and not several to sweep."""

    def read_one_of(self, key: str, name: str, values: Sequence[object], index: int) -> Sweep[object]:
        """Read one of several values; its label says which."""
        sweep = self.read(f"{key}[{index}]", name, values[index])
        label = (name, _label(values[index], index))
        return sweep.relabelled(lambda labels: (label, *labels))

    def read_all(self, key: str, name: str, values: Sequence[object]) -> Sweep[object]:
        """Read several values to sweep."""
        return one_after_another([self.read_one_of(key, name, values, i) for i in range(len(values))])


def columns(key: str, table: Table, entries: Entries) -> dict[tuple[str, ...], Sweep[Table]]:
    """Return the sweeps of a table: of each entry by itself, of those in `grid`, and of those in `zip` together.

    Each makes a dictionary with the values of its names.
    """
    found: dict[str, Sweep[object]] = {}
    for name, value in table.items():
        if name in ("grid", "zip"):
            continue
        entries.check_name(key, name, value)
        place = inside(key, name)
        if isinstance(value, list) and (not value or not entries.is_value(name, value)):
            found[name] = entries.read_all(place, name, check_list(place, value))
        else:
            found[name] = entries.read(place, name, value)
    places = dict.fromkeys(found, key)
    for name, values in _lists(key, table, "grid", places, entries).items():
        found[name] = entries.read_all(inside(inside(key, "grid"), name), name, values)
    sweeps: dict[tuple[str, ...], Sweep[Table]] = {(name,): by_name([name], [sweep]) for name, sweep in found.items()}
    together = _lists(key, table, "zip", places, entries)
    if together:
        sweeps[tuple(together)] = _zipped(inside(key, "zip"), together, entries)
    return sweeps


def by_name(names: Iterable[str], sweeps: Sequence[Sweep[object]]) -> Sweep[Table]:
    """Return every combination of ``sweeps``, as dictionaries by ``names``."""
    listed = tuple(names)
    return combined(sweeps, lambda made: dict(zip(listed, made, strict=True)))


def rows(key: str, table: Table, entries: Entries) -> Sweep[Table]:
    """Return every combination of the sweeps of a table, as dictionaries."""
    return merged(columns(key, table, entries).values())


def merged(sweeps: Iterable[Sweep[Table]]) -> Sweep[Table]:
    """Return every combination of sweeps that make dictionaries, each put together into one dictionary."""
    return combined(list(sweeps), lambda made: {name: value for each in made for name, value in each.items()})


def names_in(table: Table) -> set[str]:
    """Return the names to which a table gives values, by themselves or under `grid` or `zip`."""
    names = set(table)
    for word in ("grid", "zip"):
        lists = table.get(word)
        if isinstance(lists, dict):
            names |= set(lists)
    return names


def _lists(key: str, table: Table, word: str, places: dict[str, str], entries: Entries) -> dict[str, list[object]]:
    """Return the lists in `grid` or `zip`; ``places`` has where each name was given so far."""
    if word not in table:
        return {}
    place = inside(key, word)
    lists = {}
    for name, value in check_table(place, table[word], "{ C = [0.25, 0.5] }").items():
        entries.check_name(place, name, value)
        if name in places:
            raise ExperimentError(f"{inside(place, name)}: is given twice, also in {places[name] or 'the file'}")
        places[name] = place
        lists[name] = check_list(inside(place, name), value)
    return lists


def _label(value: object, index: int) -> float | str:
    if isinstance(value, int | float):
        return float(value)  # 1 and 0.5 are to stand in one column
    if isinstance(value, dict):
        value = value.get("use")
    if isinstance(value, str) and len(value) <= 80:
        return value
    is_numbers = isinstance(value, list) and len(value) <= 12 and all(isinstance(each, float) for each in value)
    return str(value) if is_numbers else f"{shown(value)} ({index})"


def _zipped(key: str, lists: Mapping[str, list[object]], entries: Entries) -> Sweep[Table]:
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ExperimentError(f"{key}: the lists must be equally long, got {given}")

    def row(i: int) -> Sweep[Table]:
        return by_name(
            lists, [entries.read_one_of(inside(key, name), name, values, i) for name, values in lists.items()]
        )

    return one_after_another([row(i) for i in range(next(iter(lengths.values())))])
