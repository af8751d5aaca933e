"""What a formula is, how it is compiled, and how its parameters are checked."""

from rightarm.formula.formula import Family, Formula
from rightarm.formula.parameters import (
    WHOLE,
    Count,
    NonNegative,
    Positive,
    Probability,
    Rule,
    check_choice,
    check_count,
    check_number,
    rule_of,
)
from rightarm.formula.program import Program, define, program
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
    "Program",
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
    "program",
    "rule_of",
    "without_addresses",
]
