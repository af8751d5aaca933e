"""Features: how a context becomes a row of numbers."""

from __future__ import annotations

import hashlib
import math
import numbers as kinds
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, Union

import numpy as np
from numpy.typing import NDArray

from rightarm.errors import WrongType, WrongValue, placed
from rightarm.formula import check_count
from rightarm.types import F64, I64

LARGEST = 1e70  # size of a number: products of two are squared, and many of these squares added
MOST = 100_000  # columns of a plain row, or of a hashed feature
PARTS = ("numbers", "categories", "hashed", "required")
NONE: Mapping[str, Any] = MappingProxyType({})
MENTIONED = 20  # features that an error lists
OR_MISSING = ", or None where it is missing"
RESERVED = ("other", "missing")  # columns that every category may have besides its levels
NOTHING = -1  # in place of the column that a value comes from: it is 0
ALWAYS = -2  # in place of the column that a value comes from: it is 1

Level = str | int | bool
NUMBERS = (float, int, bool)  # kinds of numbers that need no second look
LEVELS = (str, int, bool)  # kinds of levels that need no second look
Place = Union["Number", "Category", "Hashed"]
Mask = NDArray[np.bool_]


def check_value(name: str, value: Any, may_be: str = "") -> float:
    """Return a measured number as a float, True as 1; raise an error that names the feature and the value."""
    if type(value) in NUMBERS and -LARGEST <= value <= LARGEST:  # as nearly always
        return float(value)
    if not isinstance(value, kinds.Real | np.bool_):
        raise WrongType(name, f"must be a number{may_be}, got {value!r:.80}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not abs(number) <= LARGEST:  # NaN is not
        raise WrongValue(
            name, f"must be a number of at most {LARGEST:.0e} in size{may_be}, got {number}", code="out_of_range"
        )
    return number


def check_level(name: str, value: object, may_be: str = "") -> Level:
    """Return a category's value as a plain text, whole number or bool; raise if it is none."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return plain
    if isinstance(plain, int):
        return int(plain)
    if isinstance(plain, str):
        return str.__str__(plain)  # also of a member of an enumeration
    raise WrongType(name, f"must be a text, a whole number or a bool{may_be}, got {value!r:.80}")


class Number:
    """A measured number: its column, and where it may be missing a second one that says so."""

    form = "a number"

    def __init__(self, name: str, required: bool, first: int) -> None:
        self.name = name
        self.required = required
        self.first = first
        self.indicator = -1 if required else first + 1
        self.names = [name] if required else [name, f"{name} missing"]

    def write(self, x: F64, value: Any) -> None:
        """Put a value, which is not None, in its column of the row."""
        x[self.first] = check_value(self.name, value, "" if self.required else OR_MISSING)
        if self.indicator >= 0:
            x[self.indicator] = 0.0

    def select(self, rows: F64, wanted: object) -> Mask:
        """Return which encoded contexts have this value, or one between the ends of a pair, both included.

        An end of None is none at all. None alone is a missing value, which no pair has.
        """
        missing: Mask = rows[:, self.indicator] != 0 if self.indicator >= 0 else np.zeros(len(rows), dtype=bool)
        if wanted is None:
            return missing
        if not isinstance(wanted, tuple | list):
            return np.asarray(~missing & (rows[:, self.first] == check_value(f"where[{self.name!r}]", wanted)))
        if len(wanted) != 2:
            raise WrongValue(f"where[{self.name!r}]", f"must be a number or a pair of two, got {wanted!r:.80}")
        ends = [None if end is None else check_value(f"where[{self.name!r}]", end) for end in wanted]
        low = -math.inf if ends[0] is None else ends[0]
        high = math.inf if ends[1] is None else ends[1]
        if low > high:
            raise WrongValue(f"where[{self.name!r}]", f"must have the lower end first, got {wanted!r}")
        return np.asarray(~missing & (rows[:, self.first] >= low) & (rows[:, self.first] <= high))


class Category:
    """One of several declared levels, a column each; a column for all others, and one that says that it is missing."""

    def __init__(self, name: str, levels: Sequence[Level], required: bool, first: int) -> None:
        self.name = name
        self.required = required
        self.first = first
        # by their kinds as well: 1, True and "1" are three levels
        self.columns: dict[tuple[type, Level | None], int] = {
            (type(level), level): first + i for i, level in enumerate(levels)
        }
        self.other = first + len(levels)
        self.indicator = -1 if required else self.other + 1
        self.names = [f"{name}={level}" for level in [*levels, *RESERVED[: 1 if required else 2]]]
        self.form = f"a category with the levels {', '.join(map(repr, levels))}"

    def write(self, x: F64, value: Any) -> None:
        """Put a 1 in the column of the value, which is not None."""
        if type(value) not in LEVELS:
            value = check_level(self.name, value, "" if self.required else OR_MISSING)
        x[self.columns.get((type(value), value), self.other)] = 1.0
        if self.indicator >= 0:
            x[self.indicator] = 0.0

    def select(self, rows: F64, wanted: object) -> Mask:
        """Return which encoded contexts have this level, or one of several; "other" and "missing" are levels too."""
        levels = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
        return np.asarray(rows[:, [self._column(level) for level in levels]].any(axis=1))

    def _column(self, level: object) -> int:
        columns = self.columns | {(str, "other"): self.other}
        if not self.required:
            columns |= {(str, "missing"): self.indicator, (type(None), None): self.indicator}
        plain = level if level is None else check_level(f"where[{self.name!r}]", level)
        if (type(plain), plain) not in columns:
            known = ", ".join(repr(one) for _, one in columns)
            raise WrongValue(
                f"where[{self.name!r}]", f"must be some of {known}, got {level!r:.80}", code="unknown_choice"
            )
        return columns[type(plain), plain]


class Hashed:
    """Texts out of an open-ended set: each adds 1 or −1 to one of several columns, both given by its hash."""

    indicator = -1  # no texts at all are what a missing value is

    def __init__(self, name: str, buckets: int, required: bool, first: int) -> None:
        self.name = name
        self.required = required
        self.first = first
        self.buckets = buckets
        self.names = [f"{name}#{i}" for i in range(buckets)]
        self.form = f"hashed to {buckets} columns"

    def write(self, x: F64, value: Any) -> None:
        """Add a text, or a list of texts, to the columns."""
        if not isinstance(value, str | list | tuple):
            raise WrongType(self.name, f"must be a text or a list of texts, got {value!r:.80}")
        for text in (value,) if isinstance(value, str) else value:
            if not isinstance(text, str):
                raise WrongType(self.name, f"must be a text or a list of texts, got {text!r:.80} in the list")
            bucket, sign = hashed_text(text, self.buckets)
            x[self.first + bucket] += sign

    def select(self, rows: F64, wanted: object) -> Mask:
        """Raise: several texts share a column, so nobody can tell which of them a context had."""
        raise WrongValue("where", f"must not have {self.name!r}: of a hashed feature the texts are not known any more")


def hashed_text(text: str, buckets: int) -> tuple[int, float]:
    """Return the bucket and the sign of a text, the same on every machine: from BLAKE2b with 8 bytes, as one number h.

    The sign is − if h is odd, the bucket ⌊h/2⌋ modulo their number. With signs, texts that share a bucket disturb each
    other without bias (Weinberger et al.: Feature Hashing for Large Scale Multitask Learning, ICML 2009).
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return (number >> 1) % buckets, -1.0 if number & 1 else 1.0


class Features:
    """Describe a context, and turn it into a row of numbers.

    None, or a feature that a context does not have, is a missing value; NaN is an error.

    Parameters
    ----------
    numbers : list of str
        Measured numbers: a column each, and one that says that it is missing.
    categories : mapping of str to lists
        The levels of each category: a column each, one for all other values, and one that says that it is missing.
    hashed : mapping of str to int
        Texts, or lists of texts, out of an open-ended set: each text adds 1 or −1 to one of so many columns.
    required : list of str or bool
        Features that are never missing, and have no column that says so; True for all.

    Examples
    --------
    >>> import rightarm as ra
    >>> devices = {"device": ["phone", "desktop"]}
    >>> features = ra.estimators.Features(numbers=["hour"], categories=devices, required=["device"])
    >>> features.names
    ['hour', 'hour missing', 'device=phone', 'device=desktop', 'device=other']
    >>> features.encode({"hour": 21, "device": "phone"}).tolist()
    [21.0, 0.0, 1.0, 0.0, 0.0]
    >>> features.encode({"device": "fridge"}).tolist()
    [0.0, 1.0, 0.0, 0.0, 1.0]
    """

    numbers: tuple[str, ...]
    categories: Mapping[str, tuple[Level, ...]]
    hashed: Mapping[str, int]
    required: tuple[str, ...]
    size: int
    """The number of columns of an encoded context."""

    _names: list[str]
    _places: dict[str, Place]
    _start: F64  # the encoded context of which everything is missing

    def __init__(
        self,
        numbers: Sequence[str] = (),
        categories: Mapping[str, Sequence[Level]] = NONE,
        hashed: Mapping[str, int] = NONE,
        required: Sequence[str] | bool = (),
    ) -> None:
        levels = {name: _levels(name, given) for name, given in _mapping("categories", categories).items()}
        buckets = {
            name: check_count(f"buckets of {name}", count, most=MOST)
            for name, count in _mapping("hashed", hashed).items()
        }
        measured = _names("numbers", numbers)
        declared = [*measured, *levels, *buckets]
        _check_distinct("names of features", declared)
        needed = _required(required, declared)
        places = _placed(declared, levels, buckets, needed)
        columns = [column for place in places for column in place.names]
        _check_distinct("names of columns", columns)
        start = np.zeros(len(columns))
        start[[place.indicator for place in places if place.indicator >= 0]] = 1.0
        self.__dict__.update(
            numbers=tuple(measured),
            categories=MappingProxyType(levels),
            hashed=MappingProxyType(buckets),
            required=tuple(needed),
            size=start.size,
            _names=columns,
            _places={place.name: place for place in places},
            _start=start,
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"features do not change: {name} cannot be set")

    @classmethod
    def accept(cls, name: str, value: object) -> Features:
        """Return the features that a parameter called ``name`` stands for.

        It may be `Features`, a number of columns, a list of names, or what `plain` returned.

        >>> Features.accept("features", 2)
        Features(numbers=['x0', 'x1'], required=True)
        >>> Features.accept("features", ["hour", "age"]).encode({"age": 41, "hour": 21}).tolist()
        [21.0, 41.0]
        """
        if isinstance(value, Features):
            return value
        if isinstance(value, Mapping):
            unknown = [key for key in value if key not in PARTS]
            if unknown:
                raise WrongValue(name, f"must have the keys {', '.join(PARTS)} only, got {unknown[0]!r}")
            return cls(**value)
        if isinstance(value, list | tuple):
            return cls(numbers=_names(name, value), required=True)
        if not isinstance(value, kinds.Real) or isinstance(value, bool):
            raise WrongType(name, f"must be a number of columns, a list of names, or Features, got {value!r:.80}")
        return cls(numbers=[f"x{i}" for i in range(check_count(name, value, least=0, most=MOST))], required=True)

    @property
    def names(self) -> list[str]:
        """The names of the columns of an encoded context."""
        return list(self._names)

    def columns_of(self, feature: str) -> list[int]:
        """Return the columns of one feature; none if there is no such feature."""
        place = self._places.get(feature)
        return [] if place is None else list(range(place.first, place.first + len(place.names)))

    @property
    def measured(self) -> I64:
        """The columns that are measured numbers, which are standardised."""
        return np.array([self._places[name].first for name in self.numbers], dtype=np.int64)

    @property
    def indicator(self) -> I64:
        """The column that says that the value is missing, or −1, for each column of `measured`."""
        return np.array([self._places[name].indicator for name in self.numbers], dtype=np.int64)

    def encode(self, context: Any) -> F64:
        """Return a context as a row of numbers.

        Parameters
        ----------
        context : mapping, row of a data frame, or array
            Features by name, or a row of `size` numbers, which is taken as encoded already.
        """
        if type(context) is dict:
            return self._from_mapping(context)
        if type(context) is np.ndarray and context.dtype == np.float64 and context.shape == self._start.shape:
            if np.vdot(context, context) <= LARGEST**2:  # quicker than a look at each number, and never warns
                copy: F64 = context.copy()
                return copy
        elif isinstance(context, Mapping):
            return self._from_mapping(dict(context))
        elif hasattr(type(context), "columns"):  # a data frame; a row of pandas has attributes of its own by its names
            rows = self.encode_many(context)
            if len(rows) != 1:
                raise WrongValue("context", f"must be one row of a data frame, got {len(rows)}")
            row: F64 = rows[0]
            return row
        elif hasattr(type(context), "keys"):  # a row of pandas
            return self._from_mapping({name: context[name] for name in context.keys()})  # noqa: SIM118
        return self._from_row(context)

    def _from_mapping(self, context: dict[str, Any]) -> F64:
        x = self._start.copy()
        given = 0
        for name, value in context.items():
            place = self._places.get(name)
            if place is None:
                raise WrongValue(
                    "context",
                    f"must have features only, which are {self._listed()}, got {name!r}",
                    code="unknown_choice",
                )
            if value is not None:
                place.write(x, value)
                given += place.required
        if given < len(self.required):
            absent = next(name for name in self.required if context.get(name) is None)
            got = "None" if absent in context else f"a context with {', '.join(map(repr, context)) or 'nothing'}"
            raise WrongValue(absent, f"is required, got {got:.300}", code="missing_field")
        return x

    def _from_row(self, context: Any) -> F64:
        values = context.to_list() if hasattr(context, "to_list") else context
        if not isinstance(values, list | tuple) and not (isinstance(values, np.ndarray) and values.ndim):
            raise WrongType("context", f"must be a mapping or a row of {self.size} numbers, got {context!r:.80}")
        if len(values) != self.size:
            must = f"must have {self.size} numbers, or be a mapping with {self._listed()}"
            raise WrongValue("context", f"{must} (several contexts are contexts=), got {len(values)}")
        numbers = [check_value(name, value) for name, value in zip(self._names, values, strict=True)]
        return np.array(numbers, dtype=np.float64)

    def _listed(self) -> str:
        """Return the names of the features for an error; not all where they are very many."""
        names = list(self._places)
        more = f" and {len(names) - MENTIONED} more" if len(names) > MENTIONED else ""
        return ", ".join(names[:MENTIONED]) + more

    def encode_many(self, contexts: Any) -> F64:
        """Return contexts, a list, a table of numbers, a data frame, or a mapping of columns, as rows of numbers.

        >>> features = Features(numbers=["hour"], categories={"device": ["phone"]}, required=True)
        >>> features.encode_many({"hour": [21, 8], "device": ["phone", "watch"]}).tolist()
        [[21.0, 1.0, 0.0], [8.0, 0.0, 1.0]]
        """
        if isinstance(contexts, np.ndarray) and contexts.dtype.kind in "biuf" and contexts.shape[1:] == (self.size,):
            table = contexts.astype(np.float64, order="C")
            if (np.abs(table) <= LARGEST).all():
                return table
        rows = rows_of(contexts)
        encoded = np.empty((len(rows), self.size))
        for i, row in enumerate(rows):
            try:
                encoded[i] = self.encode(row)
            except (TypeError, ValueError) as error:
                raise placed(error, f"row {i + 1}") from None
        return encoded

    def select(self, rows: F64, where: Mapping[str, object]) -> Mask:
        """Return which of some encoded contexts, a row each, are in a segment.

        ``where`` maps categories to a level or a list of levels ("other" and "missing" are some too), and numbers to
        a value or a pair of ends, both included; None as an end is none, and None alone a missing value.

        >>> features = Features(numbers=["hour"], categories={"device": ["phone", "desktop"]}, required=True)
        >>> rows = features.encode_many({"hour": [21, 8, 9], "device": ["phone", "phone", "watch"]})
        >>> features.select(rows, {"device": ["phone", "other"], "hour": (9, None)}).tolist()
        [True, False, True]
        """
        chosen = np.ones(len(rows), dtype=bool)
        if not isinstance(where, Mapping):
            raise WrongType("where", f"must be a mapping from features to values, got {where!r:.80}")
        for name, wanted in where.items():
            place = self._places.get(name)
            if place is None:
                raise WrongValue(
                    "where", f"must have features only, which are {self._listed()}, got {name!r}", code="unknown_choice"
                )
            chosen &= place.select(rows, wanted)
        return chosen

    def sources(self, later: Features, what: str = "features") -> I64:
        """Return where each column of ``later``, features with some added, finds its value in a context of these.

        A feature that was added is missing there: its columns are 0, and the one that says so, if it has one, is 1. A
        feature that was required and is so no more is there.

        Parameters
        ----------
        later : Features
            All of these features, in this order, and others among them.
        what : str
            The name of the parameter, for errors.

        Returns
        -------
        array of int
            For each column of ``later`` a column of these features, NOTHING where it is 0, or ALWAYS where it is 1.

        Raises
        ------
        WrongValue
            If anything else differs: what a context had that was encoded otherwise is not known any more.

        Examples
        --------
        >>> before = Features(numbers=["hour"], required=["hour"])
        >>> later = Features(numbers=["hour", "age"], required=["hour"])
        >>> later.names
        ['hour', 'age', 'age missing']
        >>> before.sources(later).tolist()
        [0, -1, -2]
        """
        found = np.full(later.size, NOTHING, dtype=np.int64)
        for name, place in self._places.items():
            new = later._places.get(name)
            if new is None:
                raise WrongValue(what, f"must keep all features, got none called {name!r}")
            if new.form != place.form:
                raise WrongValue(what, f"must keep {name} as it is, {place.form}, got {new.form}")
            if new.required and not place.required:
                raise WrongValue(what, f"must not require {name}, which contexts may lack until now")
            found[new.first : new.first + len(place.names)] = range(place.first, place.first + len(place.names))
        for name, place in later._places.items():
            if name not in self._places and place.indicator >= 0:
                found[place.indicator] = ALWAYS
        if (np.diff(found[found >= 0]) < 0).any():
            raise WrongValue(what, f"must keep the order {', '.join(self._places)}, got {', '.join(later._places)}")
        return found

    def plain(self) -> dict[str, Any]:
        """Return the same as lists, texts and numbers, for JSON; `accept` takes it back."""
        every = len(self.required) == len(self._places)
        parts = {
            "numbers": list(self.numbers),
            "categories": {name: list(levels) for name, levels in self.categories.items()},
            "hashed": dict(self.hashed),
            "required": every or list(self.required),
        }
        return {part: value for part, value in parts.items() if value and self._places}

    def _key(self) -> tuple[object, ...]:
        """Return what features are compared by: their columns in order, and the kinds of levels, as 1 == True."""
        levels = [(name, level, type(level)) for name, levels in self.categories.items() for level in levels]
        return self.numbers, tuple(levels), tuple(self.hashed.items()), self.required

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Features) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Features({', '.join(f'{part}={value!r}' for part, value in self.plain().items())})"

    def __reduce__(self) -> tuple[object, ...]:
        return Features.accept, ("features", self.plain())


def _placed(
    declared: list[str], levels: Mapping[str, Sequence[Level]], buckets: Mapping[str, int], needed: list[str]
) -> list[Place]:
    """Return the features with their columns, one behind the other."""
    places: list[Place] = []
    required = set(needed)
    size = 0
    for name in declared:
        place: Place
        if name in levels:
            place = Category(name, levels[name], name in required, size)
        elif name in buckets:
            place = Hashed(name, buckets[name], name in required, size)
        else:
            place = Number(name, name in required, size)
        places.append(place)
        size += len(place.names)
    return places


def _names(what: str, given: object) -> list[str]:
    if not isinstance(given, list | tuple):
        raise WrongType(what, f"must be a list of names, got {given!r:.80}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise WrongType(what, f"must be a list of names, which are texts, got {name!r:.80} in it")
    return [str.__str__(name) for name in given]  # not a text of NumPy


def _mapping(what: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise WrongType(what, f"must be a mapping by names, got {given!r:.80}")
    return dict(zip(_names(what, [*given]), given.values(), strict=True))


def _levels(name: str, given: object) -> tuple[Level, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise TypeError(f"levels of {name} must be a list of one or more, got {given!r:.80}")
    levels = tuple(check_level(f"a level of {name}", level) for level in given)
    for level in levels:
        if level in RESERVED:
            raise ValueError(f"levels of {name} must not have {level!r}: there is a column {name}={level} without it")
    return levels


def _required(given: object, declared: list[str]) -> list[str]:
    """Return the names of required features, in the order of their columns."""
    if isinstance(given, bool):
        return declared if given else []
    named = _names("required", given)
    for name in named:
        if name not in declared:
            raise WrongValue("required", f"must be names of features, which are {', '.join(declared)}, got {name!r}")
    return [name for name in declared if name in named]


def _check_distinct(what: str, names: list[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise WrongValue(what, f"must differ, got {name!r} twice")
        seen.add(name)


def rows_of(contexts: Any) -> Sequence[Any]:
    """Return contexts one by one, of a list or of columns: a data frame of Polars or pandas, or a mapping."""
    if isinstance(contexts, list | tuple) or (isinstance(contexts, np.ndarray) and contexts.ndim > 0):
        return list(contexts)
    lazy = hasattr(contexts, "collect")  # a frame whose values are not there yet
    names = contexts if isinstance(contexts, Mapping) else None if lazy else getattr(contexts, "columns", None)
    if names is None:
        raise WrongType("contexts", f"must be a list, a table of numbers or a data frame, got {contexts!r:.80}")
    columns = {name: _column(name, contexts[name]) for name in names}
    lengths = sorted({len(column) for column in columns.values()})
    if len(lengths) != 1:
        raise ValueError(f"the columns of contexts must be of one length, got {lengths}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _column(name: str, column: Any) -> list[Any]:
    """Return a column as plain values, not as those of NumPy, Polars or pandas."""
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
    if not isinstance(column, list | tuple):
        raise TypeError(f"the column {name} of contexts must be a list, one context is context=, got {column!r:.80}")
    return list(column)
