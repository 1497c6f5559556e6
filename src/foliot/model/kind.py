"""Kinds of triggers and targets: their base documents, and the registries that find them.

A kind is a class. Packages name theirs by entry points, in the groups `foliot.triggers` and `foliot.targets`,
each under the name of the kind. Foliot's own kinds are found in the same way; they are in `foliot.kinds`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from foliot.model.cloud_event import EventForm
from foliot.model.document import Document
from foliot.model.errors import FoliotError, Problem
from foliot.model.policy import Dst
from foliot.model.recurrence import Recurrence

SYSTEM_PREFIX = "foliot."
"""Prefix of Foliot's own maintenance tasks. The leader runs them; no worker can."""

OptionValue = Literal["text", "interval", "instant", "duration", "pairs", "json"]


class CliOption(NamedTuple):
    """An option of `foliot schedule create` and `set` that gives fields of a kind."""

    flag: str
    """Such as `--cron`."""
    fields: tuple[str, ...]
    """The fields that it sets, one value for each. An `interval` sets none: it brings its own fields."""
    metavar: str
    help: str
    value: OptionValue = "text"
    """How a value is read. `pairs` are `NAME:VALUE` and repeatable; `json` may name a file, as `@FILE`."""
    is_choice: bool = True
    """Whether the option chooses the kind. Otherwise it only adds to it."""


@dataclass(frozen=True, slots=True)
class PreviewWarning:
    """A warning about something that is allowed but perhaps not intended."""

    code: str
    text: str
    at: datetime | None = None
    """The instant that the warning is about; None: no particular one."""


class BaseTrigger(Document):
    """A trigger, as users write it. Each kind is a subclass, with `kind: Literal[…]` as its first field."""

    kind: str
    display_name: ClassVar[str]
    position: ClassVar[int] = 100
    """Where it stands in lists of kinds: lower ones first, equal ones by name."""
    cli_options: ClassVar[tuple[CliOption, ...]] = ()
    short_forms: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names that users may write instead of fields. A patch with one of them removes those fields."""
    counts_from_start: ClassVar[bool] = False
    """Whether its times count from `start_ts`. Without one, they count from when it was saved."""
    counts_from_end: ClassVar[bool] = False
    """Whether a time is known only when the last run has ended. Then it has a `delay_s`."""
    fires_once: ClassVar[bool] = False
    """Whether it has a single time. That one fires even if it had just passed when it was saved."""
    spread_hint: ClassVar[str] = ""
    """Another way than `jitter_seconds` to fire at a less busy time."""

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
        """Compile a trigger that was accepted before, without checking whether it ever fires.

        `anchor` is what times are counted from. `key` differs between schedules.
        """
        raise NotImplementedError

    def compile(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
        """Compile the trigger. Raises an InvalidError that says what is wrong with it and where."""
        return self.build(dst=dst, anchor=anchor, key=key)

    def describe(self) -> str:
        """Describe the trigger in an English phrase. Never raises for a valid trigger."""
        return self.display_name

    def check_new(self) -> None:
        """Check what only new definitions must comply with. Raises InvalidError."""

    def warnings(self, start: datetime, key: str | None) -> Iterator[PreviewWarning]:  # noqa: ARG002
        """Warn about what people often write by mistake.

        `start` is where its times begin, in its zone. `key` is None if the schedule is not known.
        """
        yield from ()

    def follows_real_time(self, key: str) -> bool:  # noqa: ARG002
        """Whether it fires by elapsed time through clock changes, so that no DST policy applies."""
        return False

    @property
    def zone_name(self) -> str | None:
        """The time zone that its times depend on. None: they depend on none."""
        return getattr(self, "timezone", None)

    @property
    def shown_zone(self) -> tzinfo | None:
        """The zone to show its times in if they depend on none."""
        return None

    @property
    def step(self) -> timedelta | None:
        """The elapsed time between two of its times. None: it varies, or depends on the calendar."""
        return None

    @property
    def is_shared(self) -> bool:
        """Whether its times depend on nothing but the trigger and the DST policy."""
        return False

    @property
    def delay_s(self) -> float | None:
        """The seconds between the end of a run and the next. None: it does not count from the end."""
        return None


class BaseTarget(Document):
    """A target, as users write it. Each kind is a subclass, with `kind: Literal[…]` as its first field."""

    kind: str
    display_name: ClassVar[str]
    position: ClassVar[int] = 100
    """Where it stands in lists of kinds: lower ones first, equal ones by name."""
    cli_options: ClassVar[tuple[CliOption, ...]] = ()
    arguments_field: ClassVar[str] = ""
    """The field with its arguments, which `--arg` sets. Empty: it takes none."""
    task_field: ClassVar[str] = ""
    """The field with the name of a registered task function. Empty: it runs none."""
    is_event: ClassVar[bool] = False
    """Whether firing writes an event, so that no worker has to run it."""
    remedy: ClassVar[str] = "start a process that can run it"
    """What to do where `open_runner` returns None."""

    @classmethod
    def open_runner(cls, context: Any) -> Any:  # noqa: ARG003
        """Return what checks and runs targets of this kind. None: it can't be run in this process.

        It takes a RunnerContext and returns a TargetRunner; `kinds/target_protocol.py` has both.
        """
        return None

    def describe(self) -> str:
        """Say in a few words what it runs."""
        return self.display_name

    def check_arguments(self, args: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """Check arguments of a manual run, which override those of the schedule."""
        return []

    @property
    def task_name(self) -> str | None:
        """The registered task function that it runs. None: it runs none."""
        return getattr(self, self.task_field) if self.task_field else None

    @property
    def agent_url(self) -> str | None:
        """The URL of the agent that it calls, without its query, which may contain tokens."""
        return None

    def event(self) -> EventForm | None:
        """Return the event that firing writes. None: it writes none."""
        return None


Kind = TypeVar("Kind", bound=BaseTrigger | BaseTarget)


class KindError(FoliotError):
    """A package names a kind that can't be used."""


class KindRegistry(Mapping[str, type[Kind]], Generic[Kind]):
    """The kinds of one family by name, in the order in which lists show them."""

    def __init__(self, base: type[Kind], family: str) -> None:
        self._base: type[Kind] = base
        self._family = family

    def __getitem__(self, name: str) -> type[Kind]:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    @cached_property
    def _kinds(self) -> dict[str, type[Kind]]:
        found: dict[str, type[Kind]] = {}
        for point in entry_points(group=f"foliot.{self._family}s"):
            if point.name in found:
                raise KindError(f"{self._named(point)} is defined twice: remove one of the packages")
            found[point.name] = self._load(point)
        return dict(sorted(found.items(), key=lambda named: (named[1].position, named[0])))

    def _load(self, point: EntryPoint) -> type[Kind]:
        try:
            kind = point.load()
        except Exception as error:
            raise KindError(f"{self._named(point)} can't be loaded: {error!r}") from error
        if not isinstance(kind, type) or not issubclass(kind, self._base):
            raise KindError(f"{self._named(point)} is no subclass of {self._base.__name__}")
        if kind.model_fields["kind"].default != point.name:
            raise KindError(f'{self._named(point)} must have kind: Literal["{point.name}"] = "{point.name}"')
        return kind

    def _named(self, point: EntryPoint) -> str:
        package = "an unknown package" if point.dist is None else point.dist.name
        return f'the {self._family} kind "{point.name}" of {package} ({point.value})'


TRIGGERS = KindRegistry(BaseTrigger, "trigger")
TARGETS = KindRegistry(BaseTarget, "target")


class _AnyKind:
    """Makes Pydantic accept every registered kind, chosen by the field `kind`."""

    def __init__(self, registry: Mapping[str, type[Document]]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds: Any = Union[tuple(self._registry.values())]  # noqa: UP007
        return handler.generate_schema(Annotated[kinds, Field(discriminator="kind")])


if TYPE_CHECKING:
    Trigger = BaseTrigger
    Target = BaseTarget
else:
    # Not BaseTrigger and BaseTarget: the API would describe them as kinds of their own.
    Trigger = Annotated[Any, _AnyKind(TRIGGERS)]
    Target = Annotated[Any, _AnyKind(TARGETS)]
