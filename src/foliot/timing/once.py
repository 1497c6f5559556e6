"""The times of triggers with one nominal time, or none."""

from datetime import UTC, datetime


class Once:
    """A single instant."""

    __slots__ = ("_at",)

    def __init__(self, at: datetime) -> None:
        self._at = at.astimezone(UTC)

    def after(self, instant: datetime) -> datetime | None:
        return self._at if self._at > instant else None

    def before(self, instant: datetime) -> datetime | None:
        return self._at if self._at < instant else None

    def count(self, first: datetime, last: datetime) -> int:
        return int(first <= self._at <= last)


class NoTimes:
    """No nominal times: for a delay, whose next time is known only after a run has ended."""

    __slots__ = ()

    def after(self, instant: datetime) -> None:  # noqa: ARG002
        return None

    def before(self, instant: datetime) -> None:  # noqa: ARG002
        return None

    def count(self, first: datetime, last: datetime) -> int:  # noqa: ARG002
        return 0
