"""Secrets in use, redacted from logs.

There are two registries, because neither is enough. A context variable follows awaits, tasks and the threads
that Foliot starts, also those that outlive their attempt. But a thread that user code starts has no
context. So the secrets of all running attempts, and of all messages being sent, are redacted from every log
line of this process.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

HIDDEN = "***"

Mask = Callable[[str], str]
"""Redacts secrets in a text."""

hiding: ContextVar[Mask | None] = ContextVar("foliot_hiding", default=None)
"""The mask of the current attempt; None: no attempt, or no secrets."""


def pattern_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that matches any of the texts; None: there are no texts."""
    # Longest first: one text may contain another.
    ordered = sorted(set(texts), key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


class ActiveSecrets:
    """The secrets of everything that runs. Each is redacted until its last user ends."""

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
        """Redact these texts until the context ends."""
        self.add(texts)
        try:
            yield
        finally:
            self.remove(texts)

    @property
    def mask(self) -> Mask | None:
        """Redacts all of these secrets; None: there are none."""
        if self._is_stale:
            with self._lock:
                pattern = pattern_of(self._users)
                self._mask = None if pattern is None else lambda text: pattern.sub(HIDDEN, text)
                self._is_stale = False
        return self._mask


running = ActiveSecrets()
"""The secrets in use in this process."""


def current_mask(everywhere: ActiveSecrets = running) -> Mask | None:
    """Return a function that redacts all secrets known here; None: there are none."""
    own, others = hiding.get(), everywhere.mask
    if own is None or others is None:
        return own or others
    return lambda text: own(others(text))
