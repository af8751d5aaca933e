"""Formulas as plain data and back: found by their address, and checked to be the ones that were saved.

A specification is a mapping with the address of a formula, of a noise law or of an estimator (``"formula"``, ``"law"``
or ``"estimator"``), its identity (``"code"``) and its parameters, of which some may be specifications themselves.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from rightarm.formula.formula import Family, Formula
from rightarm.formula.identity import BYTECODE, PYTHON, TREE, bytecode_hash, identity, with_defaults

Specification: TypeAlias = Mapping[str, Any]
Found: TypeAlias = Any  # an object of the user's, or of ours
Find: TypeAlias = Callable[[str], Found]  # finds what stands at ``module:name``


def imported(address: str) -> Found:
    """Import what stands at ``module:name``."""
    module, _, name = address.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"{address} cannot be imported here") from None


def present(address: str) -> Found:
    """Return what stands at ``module:name`` in an imported module: reading a file must not run other code."""
    module, _, name = str(address).partition(":")
    try:
        return vars(sys.modules[module])[name]
    except KeyError:
        raise ValueError(f"{address} is not there; import its module, or give the policy itself") from None


def from_specification(specification: Specification, find: Find = imported) -> Found:
    """Make the formula, noise law or estimator again that a specification describes.

    Parameters
    ----------
    specification
        What `Formula.specification` returned.
    find
        Finds what stands at ``module:name``; by default it is imported.

    Raises
    ------
    ValueError
        If there is nothing at the address, or what is there has changed.

    Examples
    --------
    >>> import rightarm as ra
    >>> from_specification(ra.UCB(C=0.5).specification())
    UCB(C=0.5)
    """
    if "law" in specification:
        return _make_law(specification, find)
    if "estimator" in specification:
        return _make_estimator(specification, find)
    found = family_of(specification, find)
    if not isinstance(found, Family):
        return found  # a plain function of t is a schedule as it stands
    return found(**_values(specification["parameters"], find))


def _values(parameters: Specification, find: Find) -> dict[str, Found]:
    """Return the values of parameters, of which some are described themselves."""
    return {
        name: from_specification(value, find) if isinstance(value, Mapping) else value
        for name, value in parameters.items()
    }


def _make_law(specification: Specification, find: Find) -> Found:
    law = find(specification["law"])
    if not isinstance(law, type) or not hasattr(law, "quantile"):
        raise ValueError(f"{specification['law']} is not a law of noise")
    made = law(**_values(specification.get("parameters", {}), find))
    if not _is_same(made, specification):
        raise ValueError(f"the law of noise {specification['law']} has changed since this was saved")
    return made


def _make_estimator(specification: Specification, find: Find) -> Found:
    estimator = find(specification["estimator"])
    if not isinstance(estimator, type) or not hasattr(estimator, "KEEPS"):
        raise ValueError(f"{specification['estimator']} is not an estimator")
    made = estimator(**specification["parameters"])
    if not _is_same(made, specification):
        raise ValueError(f"the estimator {specification['estimator']} has changed since this was saved")
    return made


def family_of(specification: Specification, find: Find = imported) -> Found:
    """Return the family, or the plain function, that a specification names, if it is still the same."""
    found = find(specification["formula"])
    if not isinstance(found, Family | types.FunctionType):
        raise ValueError(f"{specification['formula']} is not a formula")
    objection = _objection(found, specification)
    if objection:
        raise ValueError(objection)
    return found


def difference(formula: Formula, specification: Specification) -> Literal["formula", "parameters"] | None:
    """Return in what a formula differs from the one described, if in anything; where it stands does not matter.

    Examples
    --------
    >>> import rightarm as ra
    >>> saved = ra.UCB(C=0.5).specification()
    >>> difference(ra.UCB(C=0.5), saved), difference(ra.UCB(C=0.25), saved), difference(ra.UCB1(), saved)
    (None, 'parameters', 'formula')
    """
    if _objection(formula.family, specification):
        return "formula"
    given = formula.family.resolved(specification["parameters"])
    defaults = formula.family.defaults
    is_same = set(given) <= set(defaults) and all(
        _is_same_value(formula, name, formula.values.get(name, default), given.get(name, default))
        for name, default in defaults.items()
    )
    return None if is_same else "parameters"


def _is_same_value(formula: Formula, name: str, value: Found, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        if "formula" in wanted:
            return isinstance(value, Formula) and difference(value, wanted) is None
        return _is_same(value, wanted)
    try:
        return bool(value == formula.check(name, wanted, formula.family.annotations.get(name)))
    except (TypeError, ValueError):  # not a value that this parameter can have
        return False


def _is_same(made: Found, specification: Specification) -> bool:
    """Return whether a noise law or an estimator is the one described, wherever it stands."""
    if not hasattr(made, "specification"):
        return False
    return bool(without_addresses(made.specification()) == without_addresses(specification))


def without_addresses(specification: Found) -> Found:
    """Return what a specification says of formulas and parameters, without where the formulas stand."""
    if not isinstance(specification, Mapping):
        return specification
    addresses = {name for name in ("formula", "law", "estimator") if isinstance(specification.get(name), str)}
    return {name: without_addresses(value) for name, value in specification.items() if name not in addresses}


def _objection(found: Family | types.FunctionType, specification: Specification) -> str | None:
    """Return why a formula is not the one described, if it is not."""
    address = specification["formula"]
    code = str(specification["code"])
    present_code = found.identity if isinstance(found, Family) else identity(*with_defaults(found))
    if code == present_code:
        return None
    if code.startswith(BYTECODE):
        saved_on, _, saved = code.removeprefix(BYTECODE).partition(":")
        if saved_on != PYTHON:
            return (
                f"the formula {address} was saved where its source was not at hand, and its identity is that of its "
                f"bytecode: it can be loaded by Python {saved_on} only, and this is {PYTHON}"
            )
        if saved == bytecode_hash(*(found.made_of if isinstance(found, Family) else with_defaults(found))):
            return None
    if code.startswith(TREE) and present_code.startswith(BYTECODE):
        return f"the formula {address} cannot be compared with what was saved, because its source is not at hand here"
    return f"the formula {address} has changed since this was saved"
