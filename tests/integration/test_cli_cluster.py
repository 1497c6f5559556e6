"""`foliot cluster` against a real server."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.cli import main
from tests.api.served import OPERATOR_KEY, Served, served
from tests.waiting import until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    url = f"sqlite:///{tmp_path_factory.mktemp('cluster') / 'foliot.db'}"
    # A lease that is not lost on a machine that is busy elsewhere: nothing here waits for one to run out.
    with served(url, lease_ttl_seconds=20, heartbeat_seconds=0.3) as made:
        yield made


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended = main(["cluster", *arguments])
        told = self._capsys.readouterr()
        self.err = told.err
        assert ended == code, told.err
        return told.out

    def status(self) -> Any:
        """Whatever it warns of."""
        self._capsys.readouterr()
        main(["cluster", "status", "-o", "json"])
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def cli(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Cli:
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FOLIOT_URL", server.url)
    monkeypatch.setenv("FOLIOT_KEY", OPERATOR_KEY)
    monkeypatch.chdir(tmp_path)
    return Cli(capsys)


def is_well(cluster: Any, shards: int) -> bool:
    return [each["shard"] for each in cluster["shards"] if each["is_fresh"]] == list(range(shards)) and len(
        cluster["instances"]
    ) == 1


def test_resharding_status_and_draining(server: Served, cli: Cli) -> None:
    me = server.instance.instance_id
    until(lambda: is_well(cli.status(), 1))
    cli("reshard", "3", "-y", "--reason", "more")
    assert "1 → 3 shards" in cli.err
    assert json.loads(cli("reshard", "3", "-o", "json")) == {"shards": 3, "shards_before": 3}
    until(lambda: is_well(cli.status(), 3))
    shown = cli("status")
    assert cli.err == ""
    assert shown.splitlines()[0].split() == ["SHARD", "STATE", "LEADER", "EPOCH", "HEARTBEAT"]
    assert shown.count(" led ") == 3
    assert "shard 0, 1, 2" in shown
    assert shown.splitlines()[-1].split() == ["leases", "by", "the", "database"]

    cli("drain", me, "--reason", "new kernel")
    assert f"draining {me}" in cli.err
    assert "draining" in cli("status")
    # The last scheduler goes on leading while it drains: there is nobody to hand over to.
    assert is_well(cli.status(), 3)
    assert cli("drain", me, "--undo", "-o", "name").strip() == me
    assert "draining" not in cli("status")


def test_what_is_wrong_is_told_and_is_the_exit_code(server: Served, cli: Cli) -> None:
    definition = {
        "name": "waits-in-vain",
        "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
        "target": {"kind": "function", "name": "noop"},
    }
    operator = server.by(OPERATOR_KEY)
    until(lambda: len(cli.status()["instances"]) == 1)
    assert operator.post("/api/v1/schedules", json=definition).status_code == 201
    me = server.instance.instance_id
    cli("drain", me)
    cli("status", code=1)
    assert "no worker knows the task noop: 1 schedules wait for it, such as waits-in-vain" in cli.err
    cli("drain", me, "--undo")
    cli("status")
    assert cli.err == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["reshard", "0"], 2),
        (["reshard", "1025"], 2),
        (["reshard", "many"], 2),
        (["drain"], 2),
        (["drain", "nobody"], 3),
        (["drain", "nobody", "--undo"], 3),
    ],
)
def test_what_can_not_be_done_is_refused(cli: Cli, arguments: list[str], code: int) -> None:
    cli(*arguments, code=code)
