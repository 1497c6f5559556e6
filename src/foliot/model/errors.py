"""All errors that Foliot raises on purpose. `error_codes.py` maps them to status codes and exit codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


class FoliotError(Exception):
    """An error that a user or operator can act on. Its text is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where, what, and what would be right."""

    pointer: str
    """A JSON pointer into the input, such as `/trigger/expression`."""
    code: str
    detail: str
    hint: str = ""

    def __str__(self) -> str:
        where = self.pointer.lstrip("/").replace("/", ".") or "input"
        return f"{where}: {self.detail}" + (f" ({self.hint})" if self.hint else "")


class InvalidError(FoliotError):
    """The input is not valid; nothing was stored."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @classmethod
    def at(cls, pointer: str, code: str, detail: str, hint: str = "") -> "InvalidError":
        return cls([Problem(pointer, code, detail, hint)])


class UnknownParameterError(InvalidError):
    """A request has an unknown parameter."""


class ConflictError(InvalidError):
    """The input is valid, but conflicts with the current state; nothing was done."""


class NotFoundError(FoliotError):
    """The named object does not exist, or belongs to another host."""

    def __init__(self, what: str, name: object) -> None:
        super().__init__(f"there is no {what} {name}")
        self.what = what
        self.name = name


class NameTakenError(FoliotError):
    """Another object of the host, such as a schedule, already has the name."""

    def __init__(self, name: str, what: str = "schedule") -> None:
        super().__init__(f'a {what} named "{name}" exists already')
        self.name = name
        self.what = what


class StaleVersionError(FoliotError):
    """The caller's change is based on a version that is no longer current."""

    def __init__(self, resource_id: UUID, expected: int, actual: int, what: str = "schedule") -> None:
        super().__init__(f"{what} {resource_id} is at version {actual}, the change was made for {expected}")
        self.resource_id = resource_id
        self.expected = expected
        self.actual = actual


class IllegalTransitionError(FoliotError):
    """An execution can't change from its status to the requested one."""

    def __init__(self, execution_id: UUID, status: str, wanted: str) -> None:
        super().__init__(f"execution {execution_id} is {status} and can't become {wanted}")
        self.execution_id = execution_id
        self.status = status
        self.wanted = wanted


class QueueFullError(FoliotError):
    """A schedule holds as many executions as its `overlap.max_queued` allows."""

    def __init__(self, schedule_id: UUID, max_queued: int) -> None:
        super().__init__(
            f"schedule {schedule_id} holds {max_queued} executions already, its overlap.max_queued; "
            "try again when some have run, or raise it"
        )
        self.schedule_id = schedule_id
        self.max_queued = max_queued


class UnreadableError(FoliotError):
    """A schedule was written by a newer version of Foliot and can't be read by this one."""

    def __init__(self, schedule_id: UUID, reason: str) -> None:
        super().__init__(
            f"schedule {schedule_id} was saved by a newer version of Foliot, and this one can't read it: "
            f"{reason}; upgrade this instance, or ask one of that version"
        )
        self.schedule_id = schedule_id


class CalendarInUseError(FoliotError):
    """A calendar can't be deleted while schedules name it."""

    def __init__(self, name: str, schedules: Sequence[str]) -> None:
        named = ", ".join(f'"{each}"' for each in schedules)
        super().__init__(f'calendar "{name}" is used by {named}; take it out of their calendars first')
        self.name = name
        self.schedules = tuple(schedules)


class UnauthenticatedError(FoliotError):
    """The credential is missing or not valid. The text says no more, since anybody may see it."""

    def __init__(self, why: str) -> None:
        super().__init__("the credential is missing, not valid, or no longer valid")
        self.why = why
        """The reason, for the log only; contains nothing of the credential."""


class ForbiddenError(FoliotError):
    """The credential is valid, but does not allow this."""


class TooManyIdempotencyKeysError(FoliotError):
    """A credential has used up its limit of stored idempotency keys."""

    retry_after_s = 3600.0

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this credential has used {limit} idempotency keys, which are kept for 24 hours; "
            "repeat keys that were used, leave the key out, or try later"
        )


class RateLimitedError(FoliotError):
    """The client exceeded a rate limit."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"too many requests; try again in {max(1, round(retry_after_s))} s")
        self.retry_after_s = retry_after_s


class OverloadedError(FoliotError):
    """The system is overloaded; nothing of this request was done."""


class InProgressError(FoliotError):
    """Another request does the same and has not ended yet."""


class AlreadyShownError(FoliotError):
    """The answer was shown once and is not stored."""


class UnsupportedMediaError(FoliotError):
    """The media type of the body is not supported."""


class NoSecretKeyError(FoliotError):
    """Secrets can't be stored without a key to encrypt them."""

    def __init__(self) -> None:
        super().__init__("secrets are stored encrypted: set FOLIOT_SECRET_KEY to 32 characters or more")


class BadTokenError(FoliotError):
    """The token is not for this execution, or a newer attempt has begun."""

    def __init__(self, execution_id: UUID) -> None:
        super().__init__(f"the token is not valid for execution {execution_id} or its present attempt")
        self.execution_id = execution_id


class UnstorableError(FoliotError):
    """The database can't store a value; a retry would not help."""


class FencedError(FoliotError):
    """A write under a lease was refused: the shard has a newer epoch."""

    def __init__(self, shard: int, epoch: int) -> None:
        super().__init__(f"epoch {epoch} no longer leads shard {shard}")
        self.shard = shard
        self.epoch = epoch


class SettingError(FoliotError):
    """A setting is wrong. The text names it and says what would be right."""


class DatabaseUnreachableError(FoliotError):
    """The database can't be reached or does not answer."""


class DatabaseFullError(DatabaseUnreachableError):
    """The database has no space left."""


class SchemaError(FoliotError):
    """The database's schema does not fit this version of Foliot."""


class BrokerUnreachableError(FoliotError):
    """The broker can't be reached, or the connection broke during a call."""
