"""Distributions of contexts: a round's context x is a formula of fresh noise, or a row of a data set."""

from __future__ import annotations

import base64
import functools
import hashlib
import types
import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rightarm.formula import Family, Formula, NonNegative, check_count, from_specification
from rightarm.problems.problem import Function, Specification
from rightarm.types import F64

MOST_COLUMNS = 100_000


class ContextDistribution(Formula):
    """The distribution of a round's context x: a row of numbers made from fresh noise by a formula.

    Examples
    --------
    >>> import rightarm as ra
    >>> @ra.problems.context
    ... def visitor(u, w, *, phone: ra.policies.Probability = 0.6):
    ...     return 1.0 * (u < phone), 20 + 3 * w
    >>> visitor(phone=0.5).columns
    2
    """

    WORD: ClassVar[str] = "context"
    INPUTS: ClassVar[dict[str, str]] = {
        "t": "the round, counted from 1",
        "u": "fresh noise, uniform in (0, 1)",
        "v": "more of it, independent of u",
        "w": "fresh noise, standard Gaussian",
        "normals": "a row of fresh standard Gaussians, one for each column of x",
        "uniforms": "a row of fresh numbers, uniform in (0, 1), one for each column of x",
    }
    columns: int  # of x

    def __init__(self, family: Family, values: Mapping[str, float]) -> None:
        given = dict(values)
        if "columns" in given:
            given["columns"] = check_count("columns", given["columns"], most=MOST_COLUMNS)
        elif {"normals", "uniforms"} & set(family.inputs):
            raise TypeError(
                f"{family.name} asks for a row of noise, so it needs a parameter columns: "
                f"def {family.name}(normals, *, columns)"
            )
        super().__init__(family, {name: float(v) if name == "columns" else v for name, v in given.items()})
        self.__dict__.update(values=given, columns=given.get("columns", 1))
        made = self.evaluate(self._probe())
        self.__dict__["columns"] = given.get("columns", np.size(made))
        self.row(self._probe())

    def _probe(self) -> dict[str, Any]:
        """Return the noise of a round that nobody plays, which shows what the formula does."""
        shares = (0.3 + 0.618 * np.arange(self.columns)) % 1.0
        return {"t": 1.0, "u": 0.25, "v": 0.75, "w": 0.5, "normals": 3 * shares - 1.25, "uniforms": shares}

    def row(self, noise: Mapping[str, Any]) -> F64:
        """Return the context that the formula makes of the noise of a round, by NumPy."""
        made = self.evaluate(noise)
        try:
            x = np.atleast_1d(np.asarray(made, dtype=float))
        except (TypeError, ValueError):
            raise TypeError(f"{self.family.name} must give a row of numbers, got {made!r:.200}") from None
        if x.shape != (self.columns,) or not np.isfinite(x).all():
            raise ValueError(f"{self.family.name} must give a row of {self.columns} finite numbers, got {made!r:.200}")
        return x

    def sample(self, count: int, random: np.random.Generator) -> tuple[F64, F64]:
        """Return so many contexts of round 1, a row each, and their labels, which are 0."""
        shape = (count, self.columns)
        noise = {
            "u": random.random(count),
            "v": random.random(count),
            "w": random.normal(size=count),
            "normals": random.normal(size=shape),
            "uniforms": random.random(shape),
        }
        rows = np.empty(shape)
        for i in range(count):
            rows[i] = self.row({"t": 1.0, **{name: numbers[i] for name, numbers in noise.items()}})
        return rows, np.zeros(count)

    @property
    def shape(self) -> int | None:
        """The length of the tuple that the formula gives; None if it gives an array, and 0 if a single number."""
        made = self.evaluate(self._probe())
        if isinstance(made, tuple):
            return len(made)
        return None if np.ndim(made) else 0

    @functools.cached_property
    def by_column(self) -> bool:
        """Return whether each number of x is made of its column of ``normals`` and ``uniforms``, as the probe shows."""
        probe = self._probe()
        whole = self.evaluate(probe)
        if not isinstance(whole, np.ndarray) or self.columns < 2:
            return False
        columns = zip(probe["normals"], probe["uniforms"], strict=True)
        try:
            parts = [self.evaluate({**probe, "normals": normal, "uniforms": uniform}) for normal, uniform in columns]
            return all(np.ndim(part) == 0 for part in parts) and np.array_equal(parts, whole)
        except (IndexError, TypeError):  # it looks at the row as a row
            return False

    @classmethod
    def accept(cls, name: str, value: object) -> Any:
        """Return a distribution of contexts, which may be given as a function of noise, or raise."""
        if isinstance(value, ContextDistribution | DataContext):
            return value
        if isinstance(value, types.FunctionType):
            return Family(value, cls, bare=True)()
        hint = "; call it with its parameters first" if isinstance(value, type | Family) else ""
        raise TypeError(f"{name} must be a distribution of contexts such as GaussianContext(10), got {value!r}{hint}")


def context(function: Function) -> Family:
    """Make a family of distributions of contexts from a formula of fresh noise, its parameters behind a *.

    The formula gives the numbers of x, as a tuple or as an array. It may ask for ``u`` and ``v`` (uniform in (0, 1)),
    ``w`` (standard Gaussian), ``t`` (the round), and for ``normals`` and ``uniforms``, rows of noise with a number for
    each column of x; it then has a parameter ``columns``, their number.

    Examples
    --------
    >>> import numpy as np, rightarm as ra
    >>> @ra.problems.context
    ... def correlated(normals, w, *, columns: int, share: ra.policies.Probability = 0.5):
    ...     return np.sqrt(share) * w + np.sqrt(1 - share) * normals
    >>> correlated(3)
    correlated(columns=3, share=0.5)
    """
    return Family(function, ContextDistribution)


@context
def GaussianContext(normals, *, columns: int, mean: float = 0.0, sigma: NonNegative = 1.0):
    """Draw independent Gaussian numbers with this mean and standard deviation.

    >>> GaussianContext(10).columns
    10
    """
    return mean + sigma * normals


@context
def UniformContext(uniforms, *, columns: int, low: float = 0.0, high: float = 1.0):
    """Draw independent numbers, uniform between ``low`` and ``high``.

    >>> UniformContext(2, low=-1.0)
    UniformContext(columns=2, low=-1.0, high=1.0)
    """
    return low + (high - low) * uniforms


@context
def SphereContext(normals, *, columns: int, radius: NonNegative = 1.0):
    """Draw a point that is uniform on the sphere of this radius.

    >>> SphereContext(3)
    SphereContext(columns=3, radius=1.0)
    """
    return normals * (radius / np.sqrt(np.sum(normals * normals)))


class DataContext:
    """The rows of a data set in random order: each once before any comes again, in a fresh order each time.

    Parameters
    ----------
    data
        Rows of numbers.
    labels
        A number for each row that policies do not see; the formula for mean rewards may ask for it.

    Examples
    --------
    >>> DataContext([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    <DataContext: 3 rows, 2 columns>
    """

    def __init__(self, data: ArrayLike, labels: ArrayLike | None = None) -> None:
        self.data = finite_numbers("data", data, 2)
        self.labels = np.zeros(self.rows) if labels is None else finite_numbers("labels", labels, 1)
        if self.labels.size != self.rows:
            raise ValueError(f"labels must have one for each of {self.rows} rows, got {self.labels.size}")
        self.data.setflags(write=False)
        self.labels.setflags(write=False)

    @property
    def columns(self) -> int:
        """The length of a row."""
        return int(self.data.shape[1])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.data.shape[0])

    def sample(self, count: int, random: np.random.Generator) -> tuple[F64, F64]:
        """Return all rows and their labels, or so many of them if there are more."""
        if self.rows <= count:
            return self.data, self.labels
        places = random.permutation(self.rows)[:count]
        return self.data[places], self.labels[places]

    @functools.cached_property
    def digest(self) -> str:
        """Return a hash of the numbers."""
        shape = np.array(self.data.shape).tobytes()
        return hashlib.sha256(shape + self.data.tobytes() + self.labels.tobytes()).hexdigest()

    def specification(self) -> Specification:
        """Return the data set as plain data, compressed."""
        return {"shape": list(self.data.shape), "data": _packed(self.data), "labels": _packed(self.labels)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataContext) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<DataContext: {self.rows:,} rows, {self.columns:,} columns>"


def context_from_specification(specification: Mapping[str, Any]) -> ContextDistribution | DataContext:
    """Return the distribution of contexts that its ``specification()`` described.

    >>> context_from_specification(GaussianContext(3).specification())
    GaussianContext(columns=3, mean=0.0, sigma=1.0)
    """
    if "data" not in specification:
        found: ContextDistribution = ContextDistribution.accept("context", from_specification(specification))
        return found
    data = _unpacked(specification["data"]).reshape(specification["shape"])
    return DataContext(data, _unpacked(specification["labels"]))


def finite_numbers(name: str, values: ArrayLike, dimensions: int) -> F64:
    """Return a copy of ``values`` as an array of so many dimensions, or raise.

    >>> finite_numbers("data", [[1, 2]], 2)
    array([[1., 2.]])
    """
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {values!r:.200}") from None
    if array.ndim != dimensions or not array.size:
        what = "rows of one length" if dimensions == 2 else "a row of numbers"
        raise ValueError(f"{name} must be {what}, got an array of shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(place)} must be finite, got {array[place]}")
    return np.ascontiguousarray(array)


def _packed(array: F64) -> str:
    return base64.b64encode(zlib.compress(array.astype("<f8").tobytes(), 9)).decode()


def _unpacked(text: str) -> F64:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8").astype(float)
