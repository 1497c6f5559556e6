"""Slows down guessing of credentials, without locking out other callers at the same address.

Only failed credentials count: by address, and by the id of the API key that was tried. A valid credential
never counts.

Once a name (an address or a key id) has used up its rate:

- Each further failure is answered only after HOLD_S, with 429.
- At most MAX_HELD of its requests are checked at a time, so it can make MAX_HELD guesses per HOLD_S. Further
  requests get a 429 at once, without a check.
- A credential that was recently valid is always checked. So is an agent's token, which is too long to guess.
  Only a caller that is new to this process may have to retry, and only while others at its address guess.

The number of failures that are held back is limited, so that they never fill the server.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from foliot.access.keys import ApiKey
from foliot.api.access.rate_limits import RateKind, RateLimiter
from foliot.model.errors import BadTokenError, NotFoundError, RateLimitedError, UnauthenticatedError

T = TypeVar("T")

HOLD_S = 1.0
MAX_HELD = 4
"""Maximum number of held requests of one name."""
MAX_HELD_IN_ALL = 50
MAX_NAMES = 10_000
MAX_KNOWN = 10_000
"""Maximum number of recently valid credentials in memory."""

Sleep = Callable[[float], Awaitable[None]]


class FailedSignInError(UnauthenticatedError):
    """A sign-in link is not valid. The response is a page, but it counts as a failure."""

    def __init__(self) -> None:
        super().__init__("a spent or unknown link")


def names_of(address: str, credential: str | None) -> tuple[str, ...]:
    """Return the names under which a failure of this credential counts."""
    # Drop the scheme, whatever its case, as the authenticator does. A session cookie has no scheme.
    key = ApiKey.parse((credential or "").rpartition(" ")[2])
    return (address,) if key is None else (address, f"key:{key.key_id}")


class GuessLimit:
    def __init__(self, limiter: RateLimiter, sleep: Sleep = asyncio.sleep) -> None:
        self._limiter = limiter
        self._sleep = sleep
        self._over_until: dict[str, float] = {}
        """Names that have used up their rate, and the earliest time when this ends."""
        self._held: Counter[str] = Counter()
        self._known: dict[bytes | None, None] = {}

    async def check(
        self,
        names: Sequence[str],
        credential: str | None,
        check: Callable[[], Awaitable[T]],
        *,
        is_unguessable: bool = False,
    ) -> T:
        """Run `check` and return its result. If it raises that the credential is wrong, count a failure.

        `check` may add to `names` while it runs. Raises RateLimitedError, and what `check` raises.
        """
        over = [name for name in names if self._wait_s(name) is not None]
        digest = _digest_of(credential)
        is_admitted = is_unguessable or digest in self._known
        if over and not is_admitted and not self._has_room(over):
            raise RateLimitedError(HOLD_S)
        with self._holding([] if is_admitted else over):
            try:
                found = await check()
            except (UnauthenticatedError, BadTokenError, NotFoundError):
                self._known.pop(digest, None)
                wait_s = await self._count(names)
                if wait_s is None:
                    raise
                if over and not is_admitted:
                    await self._sleep(HOLD_S)
                elif self._has_room(names):
                    with self._holding(names):
                        await self._sleep(HOLD_S)
                raise RateLimitedError(wait_s) from None
        self._remember(digest)
        return found

    async def _count(self, names: Sequence[str]) -> float | None:
        """Count a failure. Return the seconds to wait. None: within the rate of all names."""
        longest: float | None = None
        for name in names:
            wait_s = await self._limiter.hit(name, RateKind.FAILED)
            self._over_until.pop(name, None)
            if wait_s is not None:
                if len(self._over_until) >= MAX_NAMES:
                    del self._over_until[next(iter(self._over_until))]
                self._over_until[name] = asyncio.get_running_loop().time() + wait_s
                longest = max(wait_s, longest or 0.0)
        return longest

    def _wait_s(self, name: str) -> float | None:
        until = self._over_until.get(name)
        left_s = None if until is None else until - asyncio.get_running_loop().time()
        return left_s if left_s is not None and left_s > 0 else None

    def _has_room(self, names: Sequence[str]) -> bool:
        return self._held.total() < MAX_HELD_IN_ALL and all(self._held[name] < MAX_HELD for name in names)

    @contextmanager
    def _holding(self, names: Sequence[str]) -> Iterator[None]:
        self._held.update(names)
        try:
            yield
        finally:
            self._held -= Counter(names)  # also removes names whose count is 0

    def _remember(self, digest: bytes | None) -> None:
        if digest is None:
            return
        self._known.pop(digest, None)
        if len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[digest] = None


def _digest_of(credential: str | None) -> bytes | None:
    """Return a hash of a credential, so that no credentials are held in memory.

    None: the credential is in the body, which was not read yet.
    """
    if credential is None:
        return None
    return hashlib.blake2b(credential.encode(errors="backslashreplace"), digest_size=16).digest()
