"""Formulas as plain data and back: found by their address, and checked to be the ones that were saved."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rightarm.formula.compile import bytecode_hash
from rightarm.formula.formula import Family, Formula
from rightarm.formula.identity import BYTECODE, PYTHON, TREE, identity, with_defaults


def imported(address: str) -> Any:
    """Import what stands at ``module:name``."""
    module, _, name = address.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"{address} cannot be imported here") from None


def present(address: str) -> Any:
    """What stands at ``module:name`` in a module that is imported already: reading a file must not run other code."""
    module, _, name = str(address).partition(":")
    try:
        return vars(sys.modules[module])[name]
    except KeyError:
        raise ValueError(f"{address} is not there; import its module, or give the policy itself") from None


def from_specification(specification: Mapping[str, Any], find: Callable[[str], Any] = imported) -> Any:
    """The formula that `Formula.specification` described; ``find`` finds what stands at ``module:name``.

    >>> import rightarm as ra
    >>> from_specification(ra.UCB(C=0.5).specification())
    UCB(C=0.5)
    """
    if "law" in specification:
        return _law(specification, find)
    if "estimator" in specification:
        return _estimator(specification, find)
    found, values = family_of(specification, find), _values(specification["parameters"], find)
    return found(**values) if isinstance(found, Family) else found  # a plain function of t is a schedule as it stands


def _values(parameters: Mapping[str, Any], find: Callable[[str], Any]) -> dict[str, Any]:
    """The values of parameters, of which some are described themselves."""
    return {
        name: from_specification(value, find) if isinstance(value, Mapping) else value
        for name, value in parameters.items()
    }


def _law(specification: Mapping[str, Any], find: Callable[[str], Any]) -> Any:
    law = find(specification["law"])
    if not isinstance(law, type) or not hasattr(law, "quantile"):
        raise ValueError(f"{specification['law']} is not a law of noise")
    made = law(**_values(specification.get("parameters", {}), find))
    if not _same_law(made, specification):
        raise ValueError(f"the law of noise {specification['law']} has changed since this was saved")
    return made


def _estimator(specification: Mapping[str, Any], find: Callable[[str], Any]) -> Any:
    estimator = find(specification["estimator"])
    if not isinstance(estimator, type) or not hasattr(estimator, "KEEPS"):
        raise ValueError(f"{specification['estimator']} is not an estimator")
    made = estimator(**specification["parameters"])
    if not _same_estimator(made, specification):
        raise ValueError(f"the estimator {specification['estimator']} has changed since this was saved")
    return made


def family_of(specification: Mapping[str, Any], find: Callable[[str], Any] = imported) -> Any:
    """The family, or the plain function, that a specification names, if it is still the same."""
    found = find(specification["formula"])
    if not isinstance(found, Family | types.FunctionType):
        raise ValueError(f"{specification['formula']} is not a formula")
    objection = _objection(found, specification)
    if objection:
        raise ValueError(objection)
    return found


def difference(formula: Formula, specification: Mapping[str, Any]) -> Literal["formula", "parameters"] | None:
    """In what a formula differs from the one described, if in anything; where it stands does not matter.

    >>> import rightarm as ra
    >>> saved = ra.UCB(C=0.5).specification()
    >>> difference(ra.UCB(C=0.5), saved), difference(ra.UCB(C=0.25), saved), difference(ra.UCB1(), saved)
    (None, 'parameters', 'formula')
    """
    if _objection(formula.family, specification):
        return "formula"
    given, defaults = formula.family.resolved(specification["parameters"]), formula.family.defaults
    same = set(given) <= set(defaults) and all(
        _same_value(formula, name, formula.values.get(name, default), given.get(name, default))
        for name, default in defaults.items()
    )
    return None if same else "parameters"


def _same_value(formula: Formula, name: str, value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if "law" in wanted:
            return _same_law(value, wanted)
        if "estimator" in wanted:
            return _same_estimator(value, wanted)
        return isinstance(value, Formula) and difference(value, wanted) is None
    try:
        return bool(value == formula.check(name, wanted, formula.family.annotations.get(name)))
    except (TypeError, ValueError):  # not a value that this parameter can have
        return False


def _same_law(law: Any, specification: Mapping[str, Any]) -> bool:
    """Whether a law of noise is the one described."""
    wanted = without_addresses(specification.get("parameters", {}))
    if not hasattr(law, "quantile") or without_addresses(law.specification().get("parameters", {})) != wanted:
        return False
    return bool(specification["code"] == identity(type(law)))


def _same_estimator(estimator: Any, specification: Mapping[str, Any]) -> bool:
    """Whether an estimator is the one described."""
    return bool(without_addresses(estimator.specification()) == without_addresses(specification))


def without_addresses(specification: Any) -> Any:
    """What a specification says of formulas and parameters, without where the formulas stand."""
    if not isinstance(specification, Mapping):
        return specification
    addresses = {name for name in ("formula", "law", "estimator") if isinstance(specification.get(name), str)}
    return {name: without_addresses(value) for name, value in specification.items() if name not in addresses}


def _objection(found: Family | types.FunctionType, specification: Mapping[str, Any]) -> str | None:
    """Why a formula is not the one described, if it is not."""
    address, code = specification["formula"], str(specification["code"])
    own = found.identity if isinstance(found, Family) else identity(*with_defaults(found))
    if code == own:
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
    if code.startswith(TREE) and own.startswith(BYTECODE):
        return f"the formula {address} cannot be compared with what was saved, because its source is not at hand here"
    return f"the formula {address} has changed since this was saved"
