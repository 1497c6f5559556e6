"""Runs one history: processes, users and faults in a seeded order, then a calm phase, then the verdict."""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore
from foliot.model.errors import FoliotError
from foliot.scheduler.firing import FiringService
from tests.simulation.ids import seeded_ids
from tests.simulation.instances import Bus, Instance, LossyHints, Surroundings
from tests.simulation.instances import SchedulerInstance as Scheduler
from tests.simulation.instances import WorkerInstance as Worker
from tests.simulation.memory import Memory
from tests.simulation.network import Network, Sender, SimulatedDatabase, stepping
from tests.simulation.people import People
from tests.simulation.target import Agent, SimulatedTarget
from tests.simulation.verdict import judge, overdue, unsettled
from tests.simulation.virtual_loop import VirtualLoop
from tests.simulation.witness import Witness

TURNS = (200, 350)
WORKERS = 2
QUIET_S = 120.0
"""Virtual seconds in which everything must be done after the last fault."""
MAX_TURNS_AT_ONCE = 500
WEIGHTS = {"firing": 4.0, "settling": 3.0, "worker": 2.0, "presence": 0.2, "backfill": 0.1}
"""Weights for choosing the next service to step. Firing and settling come before upkeep."""


@dataclass(slots=True)
class Told:
    """The result of a history."""

    seed: int
    accusations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)


def tell(memory: Memory, seed: int, say: Callable[[str], None] | None = None) -> Told:
    """Run the history of a seed and return its result."""
    loop = VirtualLoop(memory.clock)
    told = Told(seed)
    # Garbage collection takes a fifth of the time, and a history leaves little garbage.
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        with seeded_ids(seed, memory.clock):
            loop.run_until_complete(History(memory, loop, told, say).run())
    finally:
        loop.close()
        if was_collecting:
            gc.enable()
    return told


class History:
    def __init__(
        self, memory: Memory, loop: VirtualLoop, told: Told, say: Callable[[str], None] | None
    ) -> None:
        self._memory = memory
        self._loop = loop
        self._told = told
        self._say = say
        self._clock = memory.clock
        self._choose = choose = random.Random(told.seed)
        self._network = Network(choose, self._tell, counts=told.counts)
        self._bus = Bus(choose, lost_share=choose.choice([0.0, 0.5, 1.0]))
        self._ttl_s = choose.choice([3.0, 15.0])
        self._schedulers = choose.choice([2, 3])
        self._witness = Witness(memory.raw, self._clock.now, self._ttl_s, self._accuse)
        self._agent = Agent(memory.raw, choose, self._network, self._accuse)
        self._around = Surroundings(
            self._clock,
            self._network,
            self._bus,
            self._open,
            lambda sender: SimulatedTarget(self._agent, sender),
            self._accuse,
            self._ttl_s,
        )
        self._instances: list[Instance] = []
        self._born = 0
        sender = Sender("people", "people")
        self._people = People(
            sender,
            SqlStore.over(self._open(sender)),
            LossyHints(sender, self._bus),
            choose,
            self._clock.now,
            self._tell,
        )
        self._acts: set[asyncio.Task[None]] = set()
        loop.set_exception_handler(self._failed)

    # --- logging ----------------------------------------------------------------------------------

    def _tell(self, line: str) -> None:
        told = f"{self._clock.monotonic():8.3f}  {line}"
        self._told.lines.append(told)
        if self._say is not None:
            self._say(told)

    def _accuse(self, accusation: str) -> None:
        self._tell(f"WRONG: {accusation}")
        self._told.accusations.append(accusation)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._accuse(f"{context['message']}: {context.get('exception')!r}")

    def _open(self, sender: Sender) -> SimulatedDatabase:
        return SimulatedDatabase(self._memory, self._network, sender, self._sent, self._witness.committed)

    def _sent(self, sender: Sender) -> None:
        step = stepping.get()
        if step is not None:
            step.writes += 1
            service = step.service
            if isinstance(service, FiringService) and step.writes == 1 and service.term is not None:
                self._witness.sent(sender, service.term.lease.shard.lock_id)

    # --- the whole history ------------------------------------------------------------------------

    async def run(self) -> None:
        choose = self._choose
        await self._memory.restart(choose.choice([1, 1, 2, 3]))
        self._network.parked_share = 0.0
        for _ in range(choose.randint(3, 6)):
            await self._people.create()
        for _ in range(self._schedulers):
            self._begin(Scheduler)
        for _ in range(WORKERS):
            self._begin(Worker)
        await self._loop.rest()
        self._network.parked_share = choose.choice([0.15, 0.4])
        self._network.fault_share = choose.choice([0.0, 0.02, 0.08])
        for _ in range(choose.randint(*TURNS)):
            await self._turn()
            if self._told.accusations:
                break
        else:
            await self._come_to_rest()
        await self._end()

    def _begin(self, kind: type[Scheduler] | type[Worker]) -> None:
        self._born += 1
        off_s = self._choose.choice([0.0, 0.0, -180.0, -1.5, 2.0, 240.0])
        instance = kind(f"{kind.__name__[0]}{self._born}", self._around, off_s)
        instance.begin()
        self._instances.append(instance)
        self._tell(f"{instance.name} starts, its clock is {off_s:g} s off")

    async def _end(self) -> None:
        for instance in self._instances:
            instance.crash()
        for task in self._acts:
            task.cancel()
        await self._loop.rest()

    # --- turns ------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        roll = self._choose.random()
        if roll < 0.04:
            self._act()
        elif roll < 0.10:
            self._interfere()
        elif roll < 0.17:
            self._ambush()
        elif roll < 0.185:
            self._pass_time(self._choose.choice([1.0, 3.0, 4.0, 7.0, 13.0]))
        elif roll < 0.27:
            self._pass_time(self._choose.choice([0.01, 0.1, 0.5]))
        else:
            self._go_on()
        await self._loop.rest()

    def _go_on(self) -> None:
        """Let a call pass, or begin a step. If there is neither, advance the clock."""
        calls = [each for each in self._network.calls if not each.sender.is_paused]
        at = self._clock.monotonic()
        ready = [(each, service) for each in self._instances for service in each.ready(at)]
        if not calls and not ready:
            self._pass_time(self._until_next())
        elif calls and (not ready or self._choose.random() < 0.5):
            self._network.let_pass(self._choose.choice(calls))
        else:
            weights = [_weight_of(service.name) for _instance, service in ready]
            [(instance, service)] = self._choose.choices(ready, weights)
            instance.step(service)

    def _until_next(self) -> float:
        at = self._clock.monotonic()
        wanted = [each.next_wanted() for each in self._instances if not each.is_dead]
        times = [each for each in [*wanted, self._loop.next_timer] if each is not None and each > at]
        return min(times, default=at + 1.0) - at

    def _pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def _act(self) -> None:
        task = self._loop.create_task(self._people.act())
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)

    def _interfere(self) -> None:
        choose = self._choose
        alive = [each for each in self._instances if not each.is_dead]
        match choose.choice(["pause"] * 4 + ["go on"] * 4 + ["crash", "stop", "clock", "reshard"]):
            case "reshard":
                if choose.random() < 0.3:
                    self._reshard(choose.choice([1, 2, 3]))
            case _ if not alive:
                pass
            case "pause":
                self._pause(choose.choice(alive))
            case "go on":
                paused = [each for each in alive if each.sender.is_paused]
                if paused:
                    choose.choice(paused).sender.is_paused = False
            case "crash":
                self._crash(choose.choice(alive))
            case "stop":
                instance = choose.choice(alive)
                if not instance.is_stopping:
                    self._tell(f"{instance.name} is asked to stop")
                    instance.stop()
            case "clock":
                instance = choose.choice(alive)
                instance.wall.off = self._choose.choice([-1, 1]) * instance.wall.off * 2
        self._replace_dead()

    def _ambush(self) -> None:
        """Pause a process that is about to write its decision, or let users make a change first.

        These interleavings find the most bugs.
        """
        telling = (f"write {Pool.FIRING}", f"write {Pool.WORK}")
        senders = {each.sender for each in self._network.calls if each.what in telling}
        able = [each for each in self._instances if each.sender in senders and not each.sender.is_paused]
        if not able:
            self._go_on()
        elif self._choose.random() < 0.7:
            self._pause(self._choose.choice(able))
        else:
            self._act()

    def _pause(self, instance: Instance) -> None:
        if not instance.sender.is_paused:
            self._tell(f"{instance.name} is stopped in mid-air")
            instance.sender.is_paused = True
            self._pass_time(self._choose.choice([0.0, self._ttl_s + 1.0]))

    def _crash(self, instance: Instance) -> None:
        calls = [each.what for each in self._network.calls if each.sender is instance.sender]
        if any(each.startswith("committed") for each in calls):
            self._told.counts["unknown commits"] += 1
        self._tell(f"{instance.name} is killed, under way: {', '.join(calls) or 'nothing'}")
        instance.crash()
        self._told.counts["crashes"] += 1

    def _reshard(self, count: int) -> None:
        async def work() -> None:
            try:
                await self._people.store.leases.reshard(count)
            except FoliotError as error:
                self._tell(f"people: resharding failed: {error}")

        self._tell(f"people want {count} shards")
        task = self._loop.create_task(work())
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)

    def _replace_dead(self) -> None:
        self._instances = [each for each in self._instances if not each.is_dead]
        for kind, wanted in ((Scheduler, self._schedulers), (Worker, WORKERS)):
            count = sum(1 for each in self._instances if isinstance(each, kind))
            if count < wanted and self._choose.random() < 0.5:
                self._begin(kind)

    # --- calm phase -------------------------------------------------------------------------------

    async def _come_to_rest(self) -> None:
        """Let one surviving scheduler and worker finish all work without faults, then judge the result."""
        self._tell("from now on nothing goes wrong")
        self._network.parked_share = self._network.fault_share = 0.0
        self._bus.lost_share = 0.0
        self._agent.is_calm = True
        for kind in (Scheduler, Worker):
            able = [each for each in self._instances if isinstance(each, kind) and not each.is_dead]
            able = [each for each in able if not each.is_stopping]
            kept = self._choose.choice(able) if able else None
            for instance in self._instances:
                if isinstance(instance, kind) and instance is not kept:
                    instance.crash()
            if kept is None:
                self._begin(kind)
        self._instances = [each for each in self._instances if not each.is_dead]
        for instance in self._instances:
            instance.sender.is_paused = False
        await self._loop.rest()
        for call in list(self._network.calls):
            self._network.let_pass(call)
        await self._until(lambda: not overdue(self._memory.raw, self._clock.now()), "overdue")
        # From here on, new due times do not matter, but what was fired must be executed.
        deadline = self._clock.now()
        await self._until(lambda: not unsettled(self._memory.raw, deadline), "unsettled")
        await judge(self._memory, self._told, self._people, self._agent, self._witness, self._accuse)

    async def _until(self, is_done: Callable[[], bool], what: str) -> None:
        end = self._clock.monotonic() + QUIET_S
        await self._settle()
        while not is_done():
            if self._clock.monotonic() >= end:
                self._accuse(f"{QUIET_S:g} s after the last fault there is still something {what}")
                return
            self._pass_time(self._until_next())
            await self._settle()

    async def _settle(self) -> None:
        """Step every service that has work to do, until none has."""
        await self._loop.rest()
        for _ in range(MAX_TURNS_AT_ONCE):
            at = self._clock.monotonic()
            ready = [(each, service) for each in self._instances for service in each.ready(at)]
            if not ready:
                return
            for instance, service in ready:
                instance.step(service)
                await self._loop.rest()
        names = [f"{instance.name} {service.name}" for instance, service in ready]
        self._accuse(f"does not come to rest: {', '.join(names)} want to be stepped for ever")


def _weight_of(service: str) -> float:
    return 0.1 if service.startswith("janitor.") else WEIGHTS.get(service, 1.0)


def replay_command(seed: int) -> str:
    return f"python -m tests.simulation --seed {seed}"


def bites(histories: Sequence[Told]) -> Counter[str]:
    """Return how often each fault had an effect, over all histories."""
    total: Counter[str] = Counter()
    for each in histories:
        total += each.counts
    return total
