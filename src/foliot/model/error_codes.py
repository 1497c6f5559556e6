"""The table that maps errors to HTTP status codes and to exit codes of the CLI."""

from enum import IntEnum
from typing import NamedTuple

from foliot.model import errors
from foliot.model.errors import FoliotError


class Exit(IntEnum):
    """Exit codes of commands."""

    OK = 0
    FAILED = 1
    """It failed, or a comparison found differences."""
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    CONFLICT = 5
    TIMED_OUT = 6
    UNREACHABLE = 7
    INTERRUPTED = 130
    """As shells report a program that SIGINT ended."""


class ErrorStatus(NamedTuple):
    code: str
    """Machine-readable: the `code` of a problem document."""
    http: int
    exit: Exit


VERDICTS: dict[type[FoliotError], ErrorStatus] = {
    errors.SettingError: ErrorStatus("setting", 400, Exit.USAGE),
    errors.UnknownParameterError: ErrorStatus("unknown_parameter", 400, Exit.USAGE),
    errors.UnauthenticatedError: ErrorStatus("unauthenticated", 401, Exit.AUTH),
    errors.BadTokenError: ErrorStatus("bad_token", 401, Exit.AUTH),
    errors.ForbiddenError: ErrorStatus("forbidden", 403, Exit.AUTH),
    errors.NotFoundError: ErrorStatus("not_found", 404, Exit.NOT_FOUND),
    errors.ConflictError: ErrorStatus("conflict", 409, Exit.CONFLICT),
    errors.NameTakenError: ErrorStatus("name_taken", 409, Exit.CONFLICT),
    errors.CalendarInUseError: ErrorStatus("calendar_in_use", 409, Exit.CONFLICT),
    errors.UnreadableError: ErrorStatus("unreadable", 409, Exit.CONFLICT),
    errors.QueueFullError: ErrorStatus("queue_full", 409, Exit.CONFLICT),
    errors.IllegalTransitionError: ErrorStatus("illegal_transition", 409, Exit.CONFLICT),
    errors.FencedError: ErrorStatus("fenced", 409, Exit.CONFLICT),
    errors.InProgressError: ErrorStatus("in_progress", 409, Exit.CONFLICT),
    errors.AlreadyShownError: ErrorStatus("already_shown", 409, Exit.CONFLICT),
    errors.NoSecretKeyError: ErrorStatus("no_secret_key", 409, Exit.CONFLICT),
    errors.StaleVersionError: ErrorStatus("stale_version", 412, Exit.CONFLICT),
    errors.UnsupportedMediaError: ErrorStatus("unsupported_media_type", 415, Exit.USAGE),
    errors.InvalidError: ErrorStatus("invalid", 422, Exit.USAGE),
    errors.UnstorableError: ErrorStatus("unstorable", 422, Exit.USAGE),
    errors.TooManyIdempotencyKeysError: ErrorStatus("too_many_idempotency_keys", 429, Exit.FAILED),
    errors.RateLimitedError: ErrorStatus("rate_limited", 429, Exit.FAILED),
    errors.DatabaseFullError: ErrorStatus("database_full", 503, Exit.UNREACHABLE),
    errors.DatabaseUnreachableError: ErrorStatus("database_unreachable", 503, Exit.UNREACHABLE),
    errors.OverloadedError: ErrorStatus("overloaded", 503, Exit.UNREACHABLE),
    errors.SchemaError: ErrorStatus("schema_not_current", 503, Exit.FAILED),
    FoliotError: ErrorStatus("refused", 400, Exit.FAILED),
}
"""The most specific class of an error that is listed applies."""


def verdict_on(error: FoliotError) -> ErrorStatus:
    return next(VERDICTS[kind] for kind in type(error).__mro__ if kind in VERDICTS)


def exit_for(http: int) -> Exit:
    """Return the exit code for the HTTP status of a response."""
    if http in (408, 504):
        return Exit.TIMED_OUT
    if http >= 500:
        return Exit.UNREACHABLE if http in (502, 503) else Exit.FAILED
    return next((known.exit for known in VERDICTS.values() if known.http == http), Exit.FAILED)
