"""Isolated functions run without Foliot's credentials: neither environment nor /proc shows them."""

from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from foliot.access.environment import CREDENTIALS, WITHHELD, is_withheld, without_credentials
from foliot.instance.settings import Settings
from foliot.model.execution import Status
from tests.cluster.processes import Node
from tests.cluster.scene import Scene
from tests.conftest import OpenStore

SECRET = "never-to-be-seen-in-a-task"
CREDENTIALS_GIVEN = {
    "FOLIOT_ADMIN_KEY": f"admin-{SECRET}-0123456789-0123456789",
    "FOLIOT_JWT_SECRET": f"jwt-{SECRET}-0123456789-0123456789",
    "FOLIOT_KEY": f"key-{SECRET}",
    "FOLIOT_REDIS_URL": f"redis://:{SECRET}@127.0.0.1:1/0",
    "FOLIOT_ETCD_URL": f"http://user:{SECRET}@127.0.0.1:1",
    "FOLIOT_SECRET_KEY": f"secret-{SECRET}-0123456789-0123456789",
    "FOLIOT_SECRET_VALUE_TOKEN": SECRET,
    "FOLIOT_HINTS": "off",
}
JOBS = dedent(
    """
    import asyncio
    import os
    import subprocess
    from pathlib import Path

    from foliot import Foliot

    app = Foliot()

    @app.task
    def look() -> dict:
        started = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
        return {
            "environ": dict(os.environ),
            "started_with": Path("/proc/self/environ").read_bytes().decode().split("\\0"),
            "template": Path(f"/proc/{os.getppid()}/environ").read_bytes().decode().split("\\0"),
            "program": started.splitlines(),
        }

    @app.task
    def connects() -> None:
        async def connect() -> None:
            async with app.connect():
                pass

        asyncio.run(connect())
    """
)
READS_AT_IMPORT = JOBS.replace("app = Foliot()", 'app = Foliot(os.environ["FOLIOT_DATABASE_URL"])')


@pytest.fixture
async def scene(tmp_path: Path, sqlite_url: str, open_test_store: OpenStore) -> AsyncIterator[Scene]:
    made = Scene(sqlite_url, await open_test_store(sqlite_url), tmp_path)
    yield made
    made.nodes.end()


def start(scene: Scene, jobs: str) -> Node:
    folder = scene.folder / "secrets"
    folder.mkdir()
    (scene.folder / "jobs.py").write_text(jobs)
    given = {**CREDENTIALS_GIVEN, "FOLIOT_SECRETS_DIR": str(folder), "SHOP_REGION": "eu"}
    return scene.nodes.start("worker", "--tasks", "jobs.py", "--tasks", "foliot.contrib.shell", **given)


async def test_a_function_sees_no_credential_and_all_else(scene: Scene) -> None:
    start(scene, JOBS)
    seen = (await scene.ran("look")).result
    assert seen["environ"]["SHOP_REGION"] == "eu"
    assert seen["environ"]["FOLIOT_HINTS"] == "off"
    names = set(seen["environ"])
    for place in ("started_with", "template", "program"):
        lines = seen[place]
        assert "SHOP_REGION=eu" in lines
        assert SECRET not in str(lines)
        names |= {line.partition("=")[0] for line in lines}
    assert SECRET not in str(seen["environ"])
    assert not {name for name in names if is_withheld(name)}


async def test_a_shell_command_sees_none_of_them(scene: Scene) -> None:
    start(scene, JOBS)
    command = 'env; cat /proc/self/environ "/proc/$PPID/environ"; echo'
    schedule = await scene.schedule_of("shell", {"command": command})
    execution_id = await scene.trigger(schedule)
    await scene.stands(execution_id, Status.SUCCESS)
    lines = [line.message for line in await scene.store.executions.logs(execution_id)]
    assert any("SHOP_REGION=eu" in line for line in lines)
    assert SECRET not in str(lines)
    assert "FOLIOT_DATABASE_URL" not in str(lines)


async def test_a_shell_command_of_a_worker_without_limits_has_none(scene: Scene) -> None:
    worker = start(scene, JOBS)
    execution_id = await scene.trigger(await scene.schedule_of("shell", {"command": "ulimit -v"}))
    await scene.stands(execution_id, Status.SUCCESS)
    assert [line.message for line in await scene.store.executions.logs(execution_id)] == ["unlimited"]
    assert psutil.Process(worker.pid).cpu_affinity() == psutil.Process().cpu_affinity()


async def test_a_function_that_needs_the_database_is_refused_and_told_what_to_do(scene: Scene) -> None:
    start(scene, JOBS)
    schedule = await scene.schedule_of("connects", retry={"max_attempts": 1})
    row = await scene.stands(await scene.trigger(schedule), Status.FAILED)
    assert "FOLIOT_DATABASE_URL is not available in an isolated function" in str(row.error)
    assert "isolation='thread'" in str(row.error)


async def test_a_module_that_reads_a_credential_when_imported_is_refused_with_the_reason(
    scene: Scene,
) -> None:
    start(scene, READS_AT_IMPORT.replace("@app.task\ndef look", '@app.task(isolation="process")\ndef look'))
    schedule = await scene.schedule_of("look", retry={"max_attempts": 1})
    row = await scene.stands(await scene.trigger(schedule), Status.FAILED)
    assert "KeyError: 'FOLIOT_DATABASE_URL'" in str(row.error)
    assert "Isolated functions run without Foliot's credentials" in str(row.error)


async def test_a_function_that_runs_in_a_thread_instead_of_a_process_is_named_in_the_log(
    scene: Scene,
) -> None:
    worker = start(scene, READS_AT_IMPORT)
    await scene.ran("look")
    [line] = [line for line in worker.told().splitlines() if "in a thread" in line]
    assert "connects, look" in line
    assert "KeyError: 'FOLIOT_DATABASE_URL'" in line


def test_every_setting_that_can_hold_a_credential_is_withheld() -> None:
    public = {"jwt_jwks_url", "public_url"}
    for name, field in Settings.model_fields.items():
        if "SecretStr" in str(field.annotation) or (name.endswith("_url") and name not in public):
            assert f"FOLIOT_{name.upper()}" in CREDENTIALS, name
    assert without_credentials(dict.fromkeys([*WITHHELD, "FOLIOT_SECRET_VALUE_A", "PATH"], "x")) == {
        "PATH": "x"
    }
