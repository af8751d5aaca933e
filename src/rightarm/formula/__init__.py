"""Formulas: functions of named inputs that are compiled and whose parameters are checked."""

from rightarm.formula.compile import define
from rightarm.formula.formula import (
    WHOLE,
    Count,
    Family,
    Formula,
    NonNegative,
    Positive,
    Probability,
    Rule,
    check_choice,
    check_count,
    check_number,
    rule_of,
)
from rightarm.formula.specification import (
    difference,
    family_of,
    from_specification,
    imported,
    present,
    without_addresses,
)

__all__ = [
    "WHOLE",
    "Count",
    "Family",
    "Formula",
    "NonNegative",
    "Positive",
    "Probability",
    "Rule",
    "check_choice",
    "check_count",
    "check_number",
    "define",
    "difference",
    "family_of",
    "from_specification",
    "imported",
    "present",
    "rule_of",
    "without_addresses",
]
