"""What must not be said aloud by what runs here now: told by whoever puts secrets in place, asked by logs.

It is remembered twice, since neither is enough. A context variable follows awaits, tasks and the threads
that Foliot starts, also those that outlive their attempt; but a thread that code starts by itself has no
context of anybody's. So the secrets of all attempts that run in this process, and of all messages that it
sends, are hidden in every line of it, whoever says it.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

HIDDEN = "***"

Mask = Callable[[str], str]
"""Hides secrets in a text."""

hiding: ContextVar[Mask | None] = ContextVar("foliot_hiding", default=None)
"""Of the attempt that this is a part of."""


def pattern_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    """Finds any of the texts; None: there are none."""
    # Longest first: one may contain another.
    ordered = sorted(set(texts), key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


class ActiveSecrets:
    """The secrets of everything that runs, each for as long as the last that has it."""

    def __init__(self) -> None:
        self._users: Counter[str] = Counter()
        self._lock = Lock()
        self._mask: Mask | None = None
        self._is_stale = False

    def add(self, texts: Iterable[str]) -> None:
        with self._lock:
            for text in texts:
                self._is_stale = self._is_stale or not self._users[text]
                self._users[text] += 1

    def remove(self, texts: Iterable[str]) -> None:
        with self._lock:
            for text in texts:
                self._users[text] -= 1
                if self._users[text] <= 0:
                    del self._users[text]
                    self._is_stale = True

    @contextmanager
    def hidden(self, texts: Collection[str]) -> Iterator[None]:
        """While they are in use."""
        self.add(texts)
        try:
            yield
        finally:
            self.remove(texts)

    @property
    def mask(self) -> Mask | None:
        """None: there is nothing to hide."""
        if self._is_stale:
            with self._lock:
                pattern = pattern_of(self._users)
                self._mask = None if pattern is None else lambda text: pattern.sub(HIDDEN, text)
                self._is_stale = False
        return self._mask


running = ActiveSecrets()
"""Of this process."""


def current_mask(everywhere: ActiveSecrets = running) -> Mask | None:
    """What hides all that is known to be secret here; None: nothing is."""
    own, others = hiding.get(), everywhere.mask
    if own is None or others is None:
        return own or others
    return lambda text: own(others(text))
