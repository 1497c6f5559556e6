"""Tracks which offset of a partition can be committed: the first that was received and is not done."""

from collections import deque


class OffsetTracker:
    """The received and finished offsets of one partition."""

    def __init__(self) -> None:
        self._given: deque[int] = deque()
        self._done: set[int] = set()
        self._committed = 0
        self.position = 0
        """The offset to commit: the next owner of the partition starts here."""

    @property
    def has_moved(self) -> bool:
        return self.position > self._committed

    def given(self, offset: int) -> None:
        self._given.append(offset)

    def done(self, offset: int) -> None:
        self._done.add(offset)
        while self._given and self._given[0] in self._done:
            first = self._given.popleft()
            self._done.discard(first)
            self.position = first + 1

    def committed(self, position: int) -> None:
        self._committed = max(self._committed, position)
