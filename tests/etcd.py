"""A private etcd cluster for the tests: three real nodes on free loopback ports, which can be killed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import httpx2

from tests.servers import fast_folder, free_port

READY_WITHIN_S = 60.0
NODES = 3


class EtcdCluster:
    """Three etcd nodes with Raft consensus. Any two continue without the third."""

    name = "etcd"

    def __init__(self) -> None:
        self._program = shutil.which("etcd")
        if self._program is None:
            raise RuntimeError("etcd is not installed: `make test` installs it, or says how")
        self._folder = Path(tempfile.mkdtemp(prefix="foliot-etcd-", dir=fast_folder()))
        self._clients = [f"http://127.0.0.1:{free_port()}" for _ in range(NODES)]
        self._peers = [f"http://127.0.0.1:{free_port()}" for _ in range(NODES)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.url = ",".join(self._clients)
        self.start()

    def start(self, nodes: Iterable[int] = range(NODES)) -> None:
        """Start the nodes that do not run, and wait until they serve requests."""
        asked = list(nodes)
        for number in asked:
            if number not in self._processes:
                self._processes[number] = self._run(number)
        deadline = time.monotonic() + READY_WITHIN_S
        for number in asked:
            while not self._is_healthy(number):
                if self._processes[number].poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"etcd did not start: {self._log(number).read_text()[-2000:]}")
                time.sleep(0.05)

    def stop(self, nodes: Iterable[int] = range(NODES)) -> None:
        """Kill the nodes, as a crash would."""
        for number in nodes:
            process = self._processes.pop(number, None)
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=60)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, number: int) -> subprocess.Popen[bytes]:
        cluster = ",".join(f"node{each}={peer}" for each, peer in enumerate(self._peers))
        options = {
            "name": f"node{number}",
            "data-dir": str(self._folder / f"node{number}"),
            "listen-client-urls": self._clients[number],
            "advertise-client-urls": self._clients[number],
            "listen-peer-urls": self._peers[number],
            "initial-advertise-peer-urls": self._peers[number],
            "initial-cluster": cluster,
            "initial-cluster-token": "foliot-tests",
        }
        with self._log(number).open("ab") as log:
            return subprocess.Popen(
                [str(self._program), *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                # Exclude settings that are meant for the machine's own etcd.
                env={key: value for key, value in os.environ.items() if not key.startswith("ETCD_")},
                start_new_session=True,
            )

    def _log(self, number: int) -> Path:
        return self._folder / f"log{number}"

    def _is_healthy(self, number: int) -> bool:
        try:
            answer = httpx2.get(f"{self._clients[number]}/health", trust_env=False, timeout=2)
        except httpx2.HTTPError:
            return False
        return answer.status_code == httpx2.codes.OK and answer.json().get("health") == "true"
