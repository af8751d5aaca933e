"""Digests by which a changed byte is noticed."""

from __future__ import annotations

import hashlib

BYTES = 16


def digest_of(*parts: bytes | str) -> bytes:
    """The digest of some texts, each with its length, so that no two sequences of texts have the same."""
    found = hashlib.blake2b(digest_size=BYTES)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def first_digest(name: str, identity: str, definition: str, created: float, key: str) -> bytes:
    """Return what the first event's digest goes on from: that of the bandit's row."""
    return digest_of(name, identity, definition, repr(created), key)
