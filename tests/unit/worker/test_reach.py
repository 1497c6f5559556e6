"""What a worker looks for in the database, while brokers carry some priorities."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foliot.model.policy import Priority
from foliot.timing.clock import ClusterClock, VirtualClock
from foliot.transport.intervals import TransportIntervals
from foliot.worker.claim_scope import ClaimScope, PollScope

PACE = TransportIntervals(untaken_s=10, safety_s=5)
ALL = tuple(Priority)


@dataclass
class Broker:
    is_away: bool = False


def reach_of(transports: dict[Priority, Any]) -> tuple[PollScope, VirtualClock]:
    clock = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    return PollScope(transports, ClusterClock(clock), PACE), clock


def test_of_a_brokers_priorities_only_what_was_left_lying_and_only_now_and_then() -> None:
    reach, clock = reach_of(dict.fromkeys(ALL, Broker()))
    scope = reach.scope()
    assert scope == ClaimScope((), 10)
    reach.note_claim(scope, has_plenty=False)
    idle = reach.scope()
    assert idle is not None
    assert idle.is_empty
    assert reach.pause_s(0.1) == 5
    clock.advance(5)
    assert reach.scope() == ClaimScope((), 10)


def test_with_plenty_left_lying_it_looks_again_at_once() -> None:
    reach, _ = reach_of(dict.fromkeys(ALL, Broker()))
    reach.note_claim(reach.scope(), has_plenty=True)
    assert reach.scope() == ClaimScope((), 10)
    assert reach.pause_s(0.1) == 0


def test_what_the_database_carries_is_looked_for_at_the_usual_pace() -> None:
    reach, _ = reach_of({Priority.HIGH: Broker()})
    reach.note_claim(reach.scope(), has_plenty=False)
    assert reach.scope() == ClaimScope((Priority.MEDIUM, Priority.LOW))
    assert reach.pause_s(0.1) == 0.1


def test_while_a_broker_is_away_its_priorities_are_looked_for_too() -> None:
    broker = Broker()
    reach, _ = reach_of({Priority.HIGH: broker, Priority.LOW: Broker()})
    reach.note_claim(reach.scope(), has_plenty=False)
    broker.is_away = True
    assert reach.scope() == ClaimScope((Priority.HIGH, Priority.MEDIUM))
    assert reach.pause_s(0.1) == 0.1


def test_with_every_broker_away_it_is_as_if_there_were_none() -> None:
    reach, _ = reach_of(dict.fromkeys(ALL, Broker(is_away=True)))
    assert reach.scope() is None
    assert reach.pause_s(0.1) == 0.1
