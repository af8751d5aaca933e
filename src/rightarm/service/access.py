"""Access control: bearer tokens with scopes for each bandit, and a limit on the requests per second of each token.

Where nobody needs a token, everybody on this machine may do everything, and nobody else may: a service listens on
loopback addresses then. A browser is on this machine too, and pages from anywhere run in it. One of them may have its
own name lead to 127.0.0.1 after it was loaded (DNS rebinding), and would read answers as its own. So every request must
name this machine as its host, or a name that the service was started with, and so must the page that makes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor
from typing import NamedTuple

from rightarm.service.problem_details import Refusal
from rightarm.store.tokens import Token, Tokens

FRESH = 5.0  # seconds for which a token that was found is not looked for again: so soon a revoked one is refused
MOST_REMEMBERED = 10_000  # tokens remembered, those among them that are none
MOST_GUESSES = 20.0  # texts a second, of all callers, that are looked for although no token was found for them before
AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]*)?")  # a host, and perhaps a port
NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Caller(NamedTuple):
    """The maker of a request; without a token everybody on this machine may do everything."""

    id: str
    token: Token | None

    def allows(self, scope: str, bandit: str) -> bool:
        """Return whether the caller may do what needs ``scope`` with this bandit."""
        return self.token is None or self.token.allows(scope, bandit)


LOCAL = Caller("local", None)


class Bucket:
    """A limit: so many requests a second on average, and as many at once.

    >>> bucket = Bucket(rate=2.0, now=0.0)
    >>> [bucket.take(now) for now in (0.0, 0.0, 0.0, 0.5)]
    [0.0, 0.0, 0.5, 0.0]
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self.left = max(rate, 1.0)
        self.last = now

    def take(self, now: float) -> float:
        """Return 0 if there is room for a request, which is then counted; else the seconds until there will be."""
        self.left = min(self.left + (now - self.last) * self.rate, max(self.rate, 1.0))
        self.last = now
        if self.left < 1.0:
            return (1.0 - self.left) / self.rate
        self.left -= 1.0
        return 0.0


class Access:
    """Checks the token of every request; ``rate`` is for tokens that were made without one.

    ``host_names`` are those that requests may have besides loopback addresses where nobody needs a token.
    """

    def __init__(
        self,
        tokens: Tokens,
        rate: float | None,
        threads: Executor,
        clock: Callable[[], float] = time.monotonic,
        host_names: Iterable[str] = (),
    ) -> None:
        self._tokens = tokens
        self._rate = rate
        self._threads = threads
        self._clock = clock
        self._host_names = frozenset(check_host_name(name) for name in host_names)
        self._found_before: OrderedDict[bytes, tuple[float, Token | None]] = OrderedDict()
        self._buckets: dict[str, Bucket] = {}
        self._guesses = Bucket(MOST_GUESSES, clock())
        self.needed = tokens.any()

    def look_again(self) -> None:
        """See whether the store has tokens by now; from the first one on they are needed."""
        self.needed = self.needed or self._tokens.any()

    def check_host(self, headers: Collection[tuple[bytes, bytes]]) -> None:
        """Raise if nobody needs a token, and a request is for a host of another name, or by a page of one."""
        if self.needed:
            return
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            raise Refusal(400, f"a request must have one Host header, got {len(hosts)}", code="wrong_host")
        if not self._is_ours(hosts[0]):
            hint = "`rightarm serve --host-name` allows other names"
            raise Refusal(421, f"Host must be this machine where nobody needs a token, got {hosts[0]!r:.100}; {hint}")
        for origin in (value.decode("latin-1") for name, value in headers if name == b"origin"):
            if not self._is_ours(origin.partition("://")[2]):
                detail = f"a page must be one of this machine where nobody needs a token, got {origin:.100}"
                raise Refusal(403, detail, code="wrong_origin")

    def _is_ours(self, authority: str) -> bool:
        host = host_of(authority)
        return is_loopback(host) or host in self._host_names

    async def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Caller:
        """Return who makes a request with these headers."""
        if not self.needed:
            return self._limited(LOCAL, self._rate)
        given = next((value for name, value in headers if name == b"authorization"), b"")
        kind, _, text = given.partition(b" ")
        if kind.lower() != b"bearer":
            raise Refusal(401, "a token is needed: Authorization: Bearer ra_...")
        token = await self._found(text)
        if token is None:
            raise Refusal(401, "the token is not known here, or was revoked", code="unknown_token")
        return self._limited(Caller(token.id, token), token.rate or self._rate)

    async def _found(self, text: bytes) -> Token | None:
        """Return the token that a text is; whoever guesses is slowed down, and nobody whose token was found before."""
        digest = hashlib.sha256(text).digest()
        now = self._clock()
        until, token = self._found_before.get(digest, (-math.inf, None))
        if until >= now:
            return token
        if token is None:
            _check_rate(self._guesses, now, "too many tokens that are not known here")
        given = text.decode("latin-1")
        token = await asyncio.get_running_loop().run_in_executor(self._threads, self._tokens.find, given)
        self._remember(digest, now + FRESH, token)
        return token

    def _remember(self, digest: bytes, until: float, token: Token | None) -> None:
        self._found_before[digest] = until, token
        self._found_before.move_to_end(digest)
        if len(self._found_before) > MOST_REMEMBERED:
            self._found_before.popitem(last=False)

    def _limited(self, caller: Caller, rate: float | None) -> Caller:
        """Return the caller, unless there were too many requests."""
        if rate is None:
            return caller
        now = self._clock()
        bucket = self._buckets.get(caller.id)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[caller.id] = Bucket(rate, now)
        _check_rate(bucket, now, f"too many requests: there may be {rate:g} a second")
        return caller


def _check_rate(bucket: Bucket, now: float, detail: str) -> None:
    """Raise if a bucket has no room for a request."""
    seconds = bucket.take(now)
    if seconds:
        raise Refusal(429, detail, None, {"retry-after": str(math.ceil(seconds))})


def check_allowed(caller: Caller, scope: str, bandit: str) -> None:
    """Raise unless the caller may do what needs ``scope`` with this bandit; "*" are all bandits."""
    if not caller.allows(scope, bandit):
        what = "all bandits" if bandit == "*" else bandit
        raise Refusal(403, f"the token must have the scope {scope} for {what}", code="wrong_scope")


def host_of(authority: str) -> str:
    """Return the host of an authority, without its port and in one spelling; empty if it is none.

    >>> host_of("LocalHost.:8080"), host_of("[::1]:8080"), host_of("127.0.0.1"), host_of("me@localhost:x")
    ('localhost', '::1', '127.0.0.1', '')
    """
    found = AUTHORITY.fullmatch(authority)
    return "" if found is None else found[1].strip("[]").removesuffix(".").lower()


def check_host_name(name: str) -> str:
    """Return a name that a service may be called by, in the spelling of `host_of`."""
    found = host_of(name)
    if not NAME.fullmatch(found) or name.strip(".").lower() != found:
        raise ValueError(f"host_name must be a name such as shop.example, without scheme and port, got {name!r:.100}")
    return found


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, True, False, True)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
