"""What each error means to those who asked: the one table from errors to HTTP's codes and to exit codes."""

from enum import IntEnum
from typing import NamedTuple

from foliot.model import errors
from foliot.model.errors import FoliotError


class Exit(IntEnum):
    """How a command ends."""

    OK = 0
    FAILED = 1
    """It failed, or what was compared differs."""
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    CONFLICT = 5
    TIMED_OUT = 6
    UNREACHABLE = 7
    INTERRUPTED = 130
    """As shells report a program that SIGINT has ended."""


class Verdict(NamedTuple):
    code: str
    """For programs: the `code` of a problem document."""
    http: int
    exit: Exit


VERDICTS: dict[type[FoliotError], Verdict] = {
    errors.SettingError: Verdict("setting", 400, Exit.USAGE),
    errors.UnknownParameterError: Verdict("unknown_parameter", 400, Exit.USAGE),
    errors.UnauthenticatedError: Verdict("unauthenticated", 401, Exit.AUTH),
    errors.BadTokenError: Verdict("bad_token", 401, Exit.AUTH),
    errors.ForbiddenError: Verdict("forbidden", 403, Exit.AUTH),
    errors.NotFoundError: Verdict("not_found", 404, Exit.NOT_FOUND),
    errors.ConflictError: Verdict("conflict", 409, Exit.CONFLICT),
    errors.NameTakenError: Verdict("name_taken", 409, Exit.CONFLICT),
    errors.CalendarInUseError: Verdict("calendar_in_use", 409, Exit.CONFLICT),
    errors.UnreadableError: Verdict("unreadable", 409, Exit.CONFLICT),
    errors.QueueFullError: Verdict("queue_full", 409, Exit.CONFLICT),
    errors.IllegalTransitionError: Verdict("illegal_transition", 409, Exit.CONFLICT),
    errors.FencedError: Verdict("fenced", 409, Exit.CONFLICT),
    errors.InProgressError: Verdict("in_progress", 409, Exit.CONFLICT),
    errors.AlreadyShownError: Verdict("already_shown", 409, Exit.CONFLICT),
    errors.NoSecretKeyError: Verdict("no_secret_key", 409, Exit.CONFLICT),
    errors.StaleVersionError: Verdict("stale_version", 412, Exit.CONFLICT),
    errors.UnsupportedMediaError: Verdict("unsupported_media_type", 415, Exit.USAGE),
    errors.InvalidError: Verdict("invalid", 422, Exit.USAGE),
    errors.UnstorableError: Verdict("unstorable", 422, Exit.USAGE),
    errors.TooManyIdempotencyKeysError: Verdict("too_many_idempotency_keys", 429, Exit.FAILED),
    errors.RateLimitedError: Verdict("rate_limited", 429, Exit.FAILED),
    errors.DatabaseFullError: Verdict("database_full", 503, Exit.UNREACHABLE),
    errors.DatabaseUnreachableError: Verdict("database_unreachable", 503, Exit.UNREACHABLE),
    errors.OverloadedError: Verdict("overloaded", 503, Exit.UNREACHABLE),
    errors.SchemaError: Verdict("schema_not_current", 503, Exit.FAILED),
    FoliotError: Verdict("refused", 400, Exit.FAILED),
}
"""The most specific class of an error decides."""


def verdict_on(error: FoliotError) -> Verdict:
    return next(VERDICTS[kind] for kind in type(error).__mro__ if kind in VERDICTS)


def exit_for(http: int) -> Exit:
    """How a command ends whose request was answered so."""
    if http in (408, 504):
        return Exit.TIMED_OUT
    if http >= 500:
        return Exit.UNREACHABLE if http in (502, 503) else Exit.FAILED
    return next((known.exit for known in VERDICTS.values() if known.http == http), Exit.FAILED)
