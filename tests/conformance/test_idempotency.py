"""A POST that is sent again does its thing once and gets the same answer, whatever happens in between."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from fastapi.exceptions import RequestValidationError
from sqlalchemy import func, insert, select, text, update
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse
from tests.conformance.suites.scene import Scene
from tests.plans import explain, primary_key

from foliot.access.idempotency_sql import (
    KEPT_S,
    IdempotencyKeys,
    KeyClaim,
    KeyedRequest,
    Pending,
    Reused,
    StoredResponse,
)
from foliot.api.access.idempotency_keys import LARGEST_BODY, RECOUNT_S, Idempotency, KeyInUseError, WaitLimits
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.access import idempotency_t
from foliot.model.errors import (
    AlreadyShownError,
    DatabaseUnreachableError,
    InvalidError,
    NameTakenError,
    NotFoundError,
    TooManyIdempotencyKeysError,
)
from foliot.model.ids import new_id
from foliot.timing.clock import Clock, VirtualClock

QUICK = WaitLimits(poll_s=0.005)
IMPATIENT = WaitLimits(wait_s=0)
REQUEST = KeyedRequest("key:1", "/api/v1/schedules", "once", "hash")
OTHER_BODY = REQUEST._replace(body_hash="other")
CREATED = StoredResponse(201, {"location": "/here"}, '{"a": 1}')


@pytest.fixture
def keys(scene: Scene) -> IdempotencyKeys:
    return IdempotencyKeys(scene.store.database)


async def claim(keys: IdempotencyKeys, request: KeyedRequest = REQUEST, stale_s: float = 30) -> Any:
    return await keys.claim(request, new_id(), stale_s=stale_s)


async def held(keys: IdempotencyKeys, request: KeyedRequest = REQUEST) -> KeyClaim:
    claimed = await claim(keys, request)
    assert isinstance(claimed, KeyClaim)
    return claimed


GrowOld = Callable[[float], Awaitable[None]]


@pytest.fixture
def grow_old(scene: Scene, clock: Clock) -> GrowOld:
    """Lets all rows be so many seconds older."""
    plus = scene.store.database.dialect.plus

    async def wait(seconds: float) -> None:
        if isinstance(clock, VirtualClock):
            clock.advance(seconds)
            return
        await scene.execute(
            update(idempotency_t).values(
                claimed_ts=plus(idempotency_t.c.claimed_ts, -seconds),
                created_ts=plus(idempotency_t.c.created_ts, -seconds),
            )
        )

    return wait


# --- the rows ------------------------------------------------------------------------------------------


class TestRows:
    async def test_the_first_gets_the_claim_and_the_others_wait(self, keys: IdempotencyKeys) -> None:
        resource_id = new_id()
        claimed = await keys.claim(REQUEST, resource_id, stale_s=30)
        assert isinstance(claimed, KeyClaim)
        assert (claimed.request, claimed.resource_id) == (REQUEST, resource_id)
        assert await claim(keys) == Pending()

    async def test_of_many_at_once_one_gets_the_claim(self, scene: Scene) -> None:
        many = [IdempotencyKeys(store.database) for store in await scene.stores(4)] * 5
        found = await asyncio.gather(*(claim(each) for each in many))
        assert sorted(type(each).__name__ for each in found) == ["KeyClaim"] + ["Pending"] * 19

    async def test_an_answer_is_kept_as_it_was(self, keys: IdempotencyKeys) -> None:
        assert await keys.finish(await held(keys), CREATED)
        assert await claim(keys) == CREATED

    @pytest.mark.parametrize("body", [None, "", "ü ✓ \U0001f600"])
    async def test_no_body_an_empty_one_and_any_text_are_told_apart(
        self, keys: IdempotencyKeys, body: str | None
    ) -> None:
        await keys.finish(await held(keys), StoredResponse(204, {}, body))
        assert await claim(keys) == StoredResponse(204, {}, body)

    async def test_another_body_is_told_from_the_start(self, keys: IdempotencyKeys) -> None:
        mine = await held(keys)
        assert await claim(keys, OTHER_BODY) == Reused()
        await keys.finish(mine, CREATED)
        assert await claim(keys, OTHER_BODY) == Reused()

    @pytest.mark.parametrize("part", ["credential", "route", "key"])
    async def test_other_requests_have_rows_of_their_own(self, keys: IdempotencyKeys, part: str) -> None:
        await keys.finish(await held(keys), CREATED)
        assert isinstance(await claim(keys, REQUEST._replace(**{part: "other"})), KeyClaim)

    async def test_a_key_that_is_given_back_is_as_good_as_new(self, keys: IdempotencyKeys) -> None:
        mine = await held(keys)
        await keys.give_back(mine)
        theirs = await claim(keys, OTHER_BODY)
        assert isinstance(theirs, KeyClaim)
        assert theirs.resource_id != mine.resource_id

    async def test_a_claim_that_is_let_go_is_taken_over_at_once_with_its_reserved_id(
        self, keys: IdempotencyKeys
    ) -> None:
        mine = await held(keys)
        await keys.let_go(mine)
        assert await claim(keys, OTHER_BODY) == Reused()
        theirs = await claim(keys)
        assert isinstance(theirs, KeyClaim)
        assert theirs.resource_id == mine.resource_id
        assert await claim(keys) == Pending()

    async def test_a_dead_holder_is_followed_by_one_who_gets_the_same_reserved_id(
        self, keys: IdempotencyKeys, scene: Scene, grow_old: GrowOld
    ) -> None:
        dead = await held(keys)
        await grow_old(29)
        assert await claim(keys) == Pending()
        await grow_old(2)
        many = [IdempotencyKeys(store.database) for store in await scene.stores(4)] * 3
        found = await asyncio.gather(*(claim(each) for each in many))
        [successor] = [each for each in found if isinstance(each, KeyClaim)]
        assert successor.resource_id == dead.resource_id
        assert [each for each in found if each != Pending()] == [successor]

    async def test_a_ghost_can_not_write_any_more(self, keys: IdempotencyKeys, grow_old: GrowOld) -> None:
        ghost = await held(keys)
        await grow_old(31)
        successor = await held(keys)
        assert not await keys.finish(ghost, StoredResponse(200, {}, "ghost"))
        await keys.give_back(ghost)
        await keys.let_go(ghost)
        assert await claim(keys) == Pending()
        assert await keys.finish(successor, CREATED)
        assert not await keys.finish(ghost, StoredResponse(200, {}, "ghost"))
        await keys.give_back(successor)
        assert await claim(keys) == CREATED, "what is answered stays"

    async def test_after_a_day_a_key_is_free_whether_or_not_anybody_tidied_up(
        self, keys: IdempotencyKeys, grow_old: GrowOld
    ) -> None:
        mine = await held(keys)
        await keys.finish(mine, CREATED)
        await grow_old(KEPT_S - 60)
        assert await claim(keys) == CREATED
        await grow_old(120)
        theirs = await claim(keys, OTHER_BODY)
        assert isinstance(theirs, KeyClaim)
        assert theirs.resource_id != mine.resource_id
        assert await claim(keys, OTHER_BODY) == Pending(), "nothing of the old answer is left"

    async def test_what_is_over_is_pruned_a_bounded_number_at_a_time_and_nothing_else(
        self, keys: IdempotencyKeys, scene: Scene, grow_old: GrowOld
    ) -> None:
        for number in range(5):
            await held(keys, REQUEST._replace(key=f"old-{number}"))
        await grow_old(KEPT_S + 60)
        await held(keys)
        assert [await keys.prune(limit=3) for _ in range(3)] == [3, 2, 0]
        assert [row.key for row in await scene.rows(select(idempotency_t.c.key))] == ["once"]

    async def test_a_row_is_found_by_its_key_and_old_ones_by_their_age(
        self, keys: IdempotencyKeys, scene: Scene, grow_old: GrowOld
    ) -> None:
        await held(keys)
        await grow_old(KEPT_S + 60)
        # Many rows of the last day, made from the one that is there.
        [row] = await scene.rows(select(idempotency_t))
        now = await scene.now()
        fresh = row._asdict() | {"claimed_ts": now, "created_ts": now}
        await scene.execute(insert(idempotency_t).values([fresh | {"key": f"k{n}"} for n in range(2000)]))
        await scene.execute(text("ANALYZE idempotency_t"))
        known = REQUEST._replace(key="k7")
        found, plan = await explain(scene.store, Pool.API, claim(keys, known))
        assert found == Pending()
        assert primary_key(scene.store, "idempotency_t") in plan.indexes, plan.text
        assert [each for each in plan.scans if each.startswith("idempotency_t")] == [], plan.text
        pruned, plan = await explain(scene.store, Pool.API, keys.prune(limit=100))
        assert pruned == 1
        assert "idx_idempotency_created" in plan.indexes, plan.text
        assert [each for each in plan.scans if each.startswith("idempotency_t")] == [], plan.text


# --- requests ------------------------------------------------------------------------------------------


class Handler:
    """Makes something; remembers under which ids. May be held up, and fail."""

    def __init__(self, answer: Callable[[UUID], Response] | None = None) -> None:
        self.made: list[UUID] = []
        self.answer = answer or (
            lambda made: JSONResponse(
                {"id": str(made)},
                201,
                {"Location": f"/api/v1/things/{made}", "ETag": '"1"', "Set-Cookie": "secret"},
            )
        )
        self.error: Exception | None = None
        self.is_entered = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self, resource_id: UUID) -> Response:
        self.made.append(resource_id)
        self.is_entered.set()
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return self.answer(resource_id)


class Looks:
    """How often somebody looked whether a request is theirs."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Condition()

    async def one_more(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()

    async def reach(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


class Watched(IdempotencyKeys):
    def __init__(self, database: Database, looks: Looks) -> None:
        super().__init__(database)
        self._looks = looks

    async def claim(self, *arguments: Any, **named: Any) -> Any:
        found = await super().claim(*arguments, **named)
        await self._looks.one_more()
        return found


Send = Callable[..., Awaitable[Response]]


def sender(idempotency: Idempotency, handler: Handler) -> Send:
    async def send(
        *,
        credential: str = "key:1",
        route: str = "/api/v1/things",
        key: str = "once",
        body: bytes = b"{}",
        keeps_body: bool = True,
    ) -> Response:
        return await idempotency.run(credential, route, key, body, handler, keeps_body=keeps_body)

    return send


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def send(keys: IdempotencyKeys, clock: Clock, handler: Handler) -> Send:
    return sender(Idempotency(keys, clock, QUICK), handler)


def is_replayed(response: Response) -> bool:
    return response.headers.get("idempotency-replayed") == "true"


class TestRequests:
    async def test_a_repeated_request_gets_the_first_answer_and_is_not_carried_out(
        self, send: Send, handler: Handler
    ) -> None:
        first, second = await send(), await send()
        assert len(handler.made) == 1
        assert not is_replayed(first)
        assert is_replayed(second)
        assert (second.status_code, second.body) == (first.status_code, first.body)
        for name in ("location", "etag", "content-type", "content-length"):
            assert second.headers[name] == first.headers[name]
        assert "set-cookie" not in second.headers

    async def test_twenty_at_once_do_the_thing_once_and_all_get_the_same_answer(
        self, scene: Scene, clock: Clock, handler: Handler
    ) -> None:
        handler.may_go_on.clear()
        looks = Looks()
        senders = [
            sender(Idempotency(Watched(store.database, looks), clock, QUICK), handler)
            for store in await scene.stores(4)
        ]
        sent = [asyncio.ensure_future(send()) for send in senders * 5]
        await looks.reach(20)
        handler.may_go_on.set()
        answers = await asyncio.gather(*sent)
        assert len(handler.made) == 1
        assert {(answer.status_code, bytes(answer.body)) for answer in answers} == {
            (201, b'{"id":"%s"}' % str(handler.made[0]).encode())
        }
        assert sorted(is_replayed(answer) for answer in answers) == [False] + [True] * 19

    async def test_those_who_wait_in_the_same_process_do_not_ask_the_database_again_and_again(
        self, scene: Scene, clock: Clock, handler: Handler
    ) -> None:
        looks = Looks()
        keys = Watched(scene.store.database, looks)
        send = sender(Idempotency(keys, clock, WaitLimits(poll_s=3600)), handler)
        handler.may_go_on.clear()
        first = asyncio.ensure_future(send())
        await handler.is_entered.wait()
        second = asyncio.ensure_future(send())
        await looks.reach(2)
        handler.may_go_on.set()
        async with asyncio.timeout(10):  # less than the longest pause
            await asyncio.gather(first, second)
        assert looks.count == 3, "once each, and once for the answer"

    async def test_another_body_under_the_same_key_is_refused(self, send: Send, handler: Handler) -> None:
        await send()
        with pytest.raises(InvalidError) as caught:
            await send(body=b'{"other": 1}')
        assert [problem.code for problem in caught.value.problems] == ["idempotency_key_reused"]
        assert len(handler.made) == 1

    @pytest.mark.parametrize("other", [{"credential": "key:2"}, {"route": "/elsewhere"}, {"key": "twice"}])
    async def test_keys_belong_to_a_credential_and_a_route(
        self, send: Send, handler: Handler, other: dict[str, str]
    ) -> None:
        await send()
        assert not is_replayed(await send(**other))
        assert len(set(handler.made)) == 2

    @pytest.mark.parametrize("key", ["", "x" * 256, "ü", "a\nb", "\0", "a\x7f"])
    async def test_what_is_no_key_is_refused(self, send: Send, handler: Handler, key: str) -> None:
        with pytest.raises(InvalidError) as caught:
            await send(key=key)
        assert [problem.code for problem in caught.value.problems] == ["idempotency_key"]
        assert handler.made == []

    @pytest.mark.parametrize("key", ["x" * 255, " ", "!~'\"%_\\"])
    async def test_any_printable_ascii_is_a_key(self, send: Send, key: str) -> None:
        await send(key=key)
        assert is_replayed(await send(key=key))

    @pytest.mark.parametrize("route", ["/" + "x" * 10_000, "/a\0b", "/ü", "/\ud800"])
    async def test_a_path_of_any_kind_is_told_from_others(self, send: Send, route: str) -> None:
        await send(route=route)
        assert is_replayed(await send(route=route))
        assert not is_replayed(await send(route=route + "x"))


REFUSALS: list[Exception] = [
    NameTakenError("a"),
    NotFoundError("schedule", "a"),
    InvalidError.at("/a", "wrong", "is wrong"),
    HTTPException(404),
    RequestValidationError([]),
]
FAILURES: list[Exception] = [
    DatabaseUnreachableError("the reply to COMMIT is lost"),
    HTTPException(503),
    RuntimeError("a bug"),
    TimeoutError(),
]


class TestFailures:
    @pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
    async def test_a_refused_request_frees_its_key_for_the_corrected_one(
        self, send: Send, handler: Handler, error: Exception
    ) -> None:
        handler.error = error
        with pytest.raises(type(error)):
            await send()
        handler.error = None
        assert (await send(body=b'{"corrected": 1}')).status_code == 201
        assert len(set(handler.made)) == 2

    @pytest.mark.parametrize("status", [303, 400, 409, 422])
    async def test_an_answer_that_refuses_is_not_kept(
        self, send: Send, handler: Handler, status: int
    ) -> None:
        handler.answer = lambda made: JSONResponse({}, status)
        assert (await send()).status_code == status
        assert not is_replayed(await send(body=b"other"))

    @pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
    async def test_a_failed_request_may_have_done_it_so_the_next_gets_the_same_reserved_id_at_once(
        self, send: Send, handler: Handler, error: Exception
    ) -> None:
        handler.error = error
        with pytest.raises(type(error)):
            await send()
        handler.error = None
        with pytest.raises(InvalidError):
            await send(body=b"other")
        assert not is_replayed(await send())
        assert len(handler.made) == 2
        assert len(set(handler.made)) == 1
        assert is_replayed(await send())

    async def test_an_answer_that_failed_is_not_kept(self, send: Send, handler: Handler) -> None:
        handler.answer = lambda made: JSONResponse({}, 503)
        assert (await send()).status_code == 503
        handler.answer = lambda made: JSONResponse({}, 200)
        assert (await send()).status_code == 200
        assert len(set(handler.made)) == 1

    async def test_who_waits_for_a_dead_holder_is_told_when_to_come_back_and_then_takes_over(
        self, keys: IdempotencyKeys, clock: Clock, handler: Handler, grow_old: GrowOld
    ) -> None:
        class Dying(Handler):
            async def __call__(self, resource_id: UUID) -> Response:
                self.made.append(resource_id)
                raise asyncio.CancelledError  # as the process ends: nothing more is written

        dying = Dying()
        with pytest.raises(asyncio.CancelledError):
            await sender(Idempotency(keys, clock, QUICK), dying)()
        send = sender(Idempotency(keys, clock, IMPATIENT), handler)
        with pytest.raises(KeyInUseError) as caught:
            await send()
        assert caught.value.retry_after_s == 5
        assert handler.made == []
        await grow_old(31)
        assert (await send()).status_code == 201
        assert handler.made == dying.made
        assert is_replayed(await send())

    async def test_a_holder_that_was_taken_for_dead_does_not_change_the_answer(
        self, keys: IdempotencyKeys, clock: Clock, grow_old: GrowOld
    ) -> None:
        stopped, prompt = Handler(lambda made: Response("late")), Handler(lambda made: Response("prompt"))
        stopped.may_go_on.clear()
        late = asyncio.ensure_future(sender(Idempotency(keys, clock, QUICK), stopped)())
        await stopped.is_entered.wait()
        await grow_old(31)
        send = sender(Idempotency(keys, clock, QUICK), prompt)
        assert (await send()).body == b"prompt"
        stopped.may_go_on.set()
        assert (await late).body == b"late", "to whom it belongs"
        assert (await send()).body == b"prompt"
        assert stopped.made == prompt.made

    async def test_a_handler_that_takes_too_long_is_stopped_before_anybody_takes_over(
        self, keys: IdempotencyKeys, clock: Clock, handler: Handler
    ) -> None:
        handler.may_go_on.clear()
        with pytest.raises(HTTPException) as caught:
            await sender(Idempotency(keys, clock, WaitLimits(work_s=0.01)), handler)()
        assert caught.value.status_code == 503
        assert caught.value.headers == {"Retry-After": "5"}
        handler.may_go_on.set()
        assert (await sender(Idempotency(keys, clock, QUICK), handler)()).status_code == 201
        assert len(set(handler.made)) == 1

    async def test_a_client_that_goes_stops_nothing(self, send: Send, handler: Handler) -> None:
        handler.may_go_on.clear()
        gone = asyncio.ensure_future(send())
        await handler.is_entered.wait()
        gone.cancel()
        await asyncio.wait({gone})
        assert gone.cancelled()
        next_try = asyncio.ensure_future(send())
        handler.may_go_on.set()
        answer = await next_try
        assert is_replayed(answer)
        assert len(handler.made) == 1

    async def test_a_client_that_goes_from_a_request_that_fails_leaves_no_noise(
        self, send: Send, handler: Handler
    ) -> None:
        noise: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: noise.append(context))
        handler.may_go_on.clear()
        gone = asyncio.ensure_future(send())
        await handler.is_entered.wait()
        gone.cancel()
        await asyncio.wait({gone})
        [under_way] = [task for task in asyncio.all_tasks() if task.get_name() == "idempotent request"]
        handler.error = RuntimeError("a bug")
        handler.may_go_on.set()
        await asyncio.wait({under_way})
        # asyncio complains of a task once nothing refers to it.
        handler.error = None
        del under_way, gone
        gc.collect()
        assert noise == []

    async def test_a_waiting_client_that_goes_stops_nothing_either(
        self, scene: Scene, clock: Clock, handler: Handler
    ) -> None:
        looks = Looks()
        send = sender(Idempotency(Watched(scene.store.database, looks), clock), handler)
        handler.may_go_on.clear()
        first = asyncio.ensure_future(send())
        await handler.is_entered.wait()
        waiting = asyncio.ensure_future(send())
        await looks.reach(2)
        waiting.cancel()
        await asyncio.wait({waiting})
        handler.may_go_on.set()
        assert (await first).status_code == 201


class Leaving(IdempotencyKeys):
    """A database that is away for some of the statements."""

    fails: frozenset[str] = frozenset()

    async def claim(self, *arguments: Any, **named: Any) -> Any:
        self._may_fail("claim")
        return await super().claim(*arguments, **named)

    async def finish(self, *arguments: Any) -> bool:
        self._may_fail("finish")
        return await super().finish(*arguments)

    async def give_back(self, *arguments: Any) -> None:
        self._may_fail("give_back")
        await super().give_back(*arguments)

    async def let_go(self, *arguments: Any) -> None:
        self._may_fail("let_go")
        await super().let_go(*arguments)

    def _may_fail(self, statement: str) -> None:
        if statement in self.fails:
            raise DatabaseUnreachableError("away")


class TestDatabaseAway:
    @pytest.fixture
    def keys(self, scene: Scene) -> Leaving:
        return Leaving(scene.store.database)

    async def test_before_the_claim_nothing_is_done(
        self, send: Send, keys: Leaving, handler: Handler
    ) -> None:
        keys.fails = frozenset({"claim"})
        with pytest.raises(DatabaseUnreachableError):
            await send()
        assert handler.made == []

    async def test_after_the_thing_is_done_the_client_is_told_and_the_next_finds_it_made(
        self, send: Send, keys: Leaving, handler: Handler, grow_old: GrowOld
    ) -> None:
        keys.fails = frozenset({"finish"})
        assert (await send()).status_code == 201
        keys.fails = frozenset()
        await grow_old(31)
        assert not is_replayed(await send())
        assert len(handler.made) == 2
        assert len(set(handler.made)) == 1

    @pytest.mark.parametrize("error", [NameTakenError("a"), RuntimeError("a bug")])
    async def test_what_went_wrong_before_is_told_and_not_that_the_row_could_not_be_released(
        self, send: Send, keys: Leaving, handler: Handler, error: Exception
    ) -> None:
        keys.fails = frozenset({"give_back", "let_go"})
        handler.error = error
        with pytest.raises(type(error)):
            await send()


class TestWhatIsKept:
    async def test_an_answer_to_be_seen_once_is_not_kept_and_not_shown_again(
        self, send: Send, handler: Handler, scene: Scene
    ) -> None:
        assert b"id" in bytes((await send(keeps_body=False)).body)
        [row] = await scene.rows(select(idempotency_t))
        assert row.body is None
        with pytest.raises(AlreadyShownError, match=f"/api/v1/things/{handler.made[0]}"):
            await send(keeps_body=False)
        assert len(handler.made) == 1

    @pytest.mark.parametrize(
        "answer",
        [
            Response("x" * (LARGEST_BODY + 1), 201, {"Location": "/here"}, "application/json"),
            Response(b"\xff", 201, {"Location": "/here"}, "application/octet-stream"),
            Response(b"a\0b", 201, {"Location": "/here"}, "text/plain"),
            StreamingResponse(iter(["part"]), 201, {"Location": "/here"}, "text/plain"),
        ],
        ids=["large", "not text", "NUL", "stream"],
    )
    async def test_a_body_that_can_not_be_kept_is_missing_from_the_repeated_answer(
        self, send: Send, handler: Handler, answer: Response
    ) -> None:
        handler.answer = lambda made: answer
        await send()
        second = await send()
        assert is_replayed(second)
        assert (second.status_code, second.headers["location"], second.body) == (201, "/here", b"")
        assert "content-type" not in second.headers
        assert len(handler.made) == 1

    async def test_a_body_is_kept_up_to_its_limit(self, send: Send, handler: Handler) -> None:
        body = "ü" * (LARGEST_BODY // 2)
        handler.answer = lambda made: Response(body, 200)
        await send()
        assert (await send()).body == body.encode()

    async def test_an_answer_without_a_body_stays_one(self, send: Send, handler: Handler) -> None:
        handler.answer = lambda made: Response(status_code=204)
        await send()
        second = await send()
        assert (second.status_code, second.body, is_replayed(second)) == (204, b"", True)
        assert "content-length" not in second.headers

    async def test_the_row_of_a_request_is_one(self, send: Send, scene: Scene) -> None:
        for _ in range(3):
            await send()
        [[count]] = await scene.rows(select(func.count()).select_from(idempotency_t))
        assert count == 1


# --- how many keys a credential may have -------------------------------------------------------------------


async def test_a_credential_has_so_many_keys_and_others_have_theirs(
    keys: IdempotencyKeys, grow_old: GrowOld
) -> None:
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    idempotency = Idempotency(keys, clock, QUICK, max_keys=3)
    done: list[UUID] = []

    async def handle(resource_id: UUID) -> Response:
        done.append(resource_id)
        return JSONResponse({"a": 1}, 201)

    async def post(key: str, credential: str = "key:1") -> Response:
        return await idempotency.run(credential, "/api/v1/schedules", key, b"", handle)

    for number in range(3):
        assert (await post(f"key {number}")).status_code == 201
    with pytest.raises(TooManyIdempotencyKeysError):
        await post("one more")
    assert len(done) == 3, "nothing was done for it"
    assert (await post("key 0")).headers["idempotency-replayed"] == "true"
    assert (await post("one more", "key:2")).status_code == 201
    await keys.prune(limit=10)
    with pytest.raises(TooManyIdempotencyKeysError):
        await post("one more")
    await grow_old(KEPT_S + 1)
    await keys.prune(limit=10)
    clock.advance(RECOUNT_S)
    assert (await post("one more")).status_code == 201
