"""Identities that formulas and estimators had before they were rewritten without a change of their values.

Whoever rewrites one of the library so that it computes the same in other words adds the identity that it had in
the last released version, under its present address; what people saved with that version goes on working::

    "rightarm.policies.ucb:UCB": ("tree:0123456789abcdef01234567",),

Files of 0.1.0 need no rows. That version hashed bytecode, which differs from Python to Python, so that its identities
cannot be compared; all its formulas compute the same to this day, and are accepted by their addresses.
"""

from __future__ import annotations

FORMER: dict[str, tuple[str, ...]] = {}
