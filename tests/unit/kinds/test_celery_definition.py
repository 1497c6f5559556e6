"""What a Celery application and a target of it must be like."""

import sys
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from pydantic import ValidationError
from tests.engine import spec

from foliot.access.secrets import SecretResolver
from foliot.brokers.celery_app import CeleryApp, load_celery
from foliot.instance.settings import Settings
from foliot.kinds.celery_target import CeleryRunner, progress_of, task_id_of
from foliot.model.errors import SettingError
from foliot.timing.clock import SystemClock

EXECUTION = UUID("01a1e357-31af-7747-b1b4-66fa0365602d")
SOON = {"kind": "interval", "seconds": 1}


def application(**conf: Any) -> Celery:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(conf)
    return app


def loaded(monkeypatch: pytest.MonkeyPatch, app: Any) -> CeleryApp:
    module = ModuleType("shop_of_this_test")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return load_celery("shop_of_this_test:app")


def test_an_application_is_found_by_module_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    app = application()
    assert loaded(monkeypatch, app).app is app


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"result_serializer": "pickle"}, 'result_serializer = "json"'),
        ({"result_accept_content": ["json", "pickle"]}, 'result_accept_content = ["json"]'),
        ({"accept_content": ["pickle", "json"]}, 'result_accept_content = ["json"]'),
    ],
)
def test_an_application_whose_results_may_be_pickles_is_refused(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingError) as caught:
        loaded(monkeypatch, application(**conf))
    assert told in str(caught.value)


def test_what_its_own_tasks_accept_is_its_own_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(monkeypatch, application(accept_content=["pickle", "json"], result_accept_content=["json"]))


@pytest.mark.parametrize("name", ["no_such_module:app", "os:no_such_name", "os:path"])
def test_what_is_no_application_is_named(name: str) -> None:
    with pytest.raises(SettingError, match=f"FOLIOT_CELERY_APP {name}"):
        load_celery(name)


@pytest.mark.parametrize("name", ["proj.celery", "proj/celery.py:app", ":app", "proj.celery:app()"])
def test_the_setting_names_a_module_and_what_it_calls_the_application(name: str) -> None:
    with pytest.raises(ValidationError, match="MODULE:NAME"):
        Settings(celery_app=name)


def problems(app: Celery, **target: Any) -> list[tuple[str, str]]:
    runner = CeleryRunner(CeleryApp(app), SecretResolver(None, {}), SystemClock())
    definition = spec("one", SOON, target={"kind": "celery", "task": "shop.clean", **target})
    return [(problem.pointer, problem.code) for problem in runner.check(definition)]


def test_a_queue_that_celery_would_not_make_is_refused() -> None:
    strict = application(task_create_missing_queues=False)
    assert problems(strict, queue="elsewhere") == [("/target/queue", "unknown_queue")]
    assert problems(strict, queue="celery") == []
    assert problems(application(), queue="elsewhere") == []


def test_names_of_secrets_are_checked_in_args_and_kwargs() -> None:
    found = problems(application(), args=["${secret:a b}"], kwargs={"x": ["${secret:}", "${secret:fine}"]})
    assert found == [("/target/args", "secret_name"), ("/target/kwargs", "secret_name")]


def test_an_attempt_has_the_same_task_id_whoever_asks_and_no_other_has_it() -> None:
    ids = [task_id_of(EXECUTION, attempt) for attempt in (1, 2, 3)]
    assert ids == [task_id_of(EXECUTION, attempt) for attempt in (1, 2, 3)]
    assert len({*ids, str(EXECUTION)}) == 4


@pytest.mark.parametrize(
    ("meta", "progress"),
    [
        ({"fraction": 0.25, "text": "a quarter"}, (0.25, "a quarter")),
        ({"current": 3, "total": 4, "status": "three"}, (0.75, "three")),
        ({"current": 3, "total": 0}, None),
        ({"fraction": 2}, None),
        ({"fraction": float("nan")}, None),
        ({"fraction": True}, None),
        ({"fraction": "half"}, None),
        ({"pid": 1, "hostname": "celery@here"}, None),
        (None, None),
    ],
)
def test_progress_is_what_a_task_says_if_it_makes_sense(meta: Any, progress: Any) -> None:
    assert progress_of(meta) == progress
