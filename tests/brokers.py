"""Private brokers for the tests: real servers on free loopback ports, which can be killed and restarted.

Kafka is Apache Kafka if possible: at the address in FOLIOT_TEST_KAFKA, or from the folder that `make kafka`
fills. Otherwise it is librdkafka's mock cluster, which speaks the protocol over TCP, loses its data when
stopped, and has no transactions. The report of a test run names the one in use.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from redis import Redis
from redis.exceptions import RedisError

from tests.servers import fast_folder, free_port

READY_WITHIN_S = 60.0
KAFKA_FOLDER = Path(__file__).parent.parent / ".kafka"
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class Broker(Protocol):
    name: str
    url: str

    def start(self) -> None: ...

    def stop(self) -> None:
        """Kill the broker, as a crash would."""
        ...

    def remove(self) -> None: ...


class _Program:
    """A server process. Its folder outlives the process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"foliot-{name}-", dir=fast_folder()))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def run(self, command: list[str], port: int, environment: Mapping[str, str] | None = None) -> None:
        self._port = port
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_WITHIN_S
        while not _listens(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start: {self.log[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            # Kill the whole process group, to include the children of a start script.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=60)
            self._process = None
            deadline = time.monotonic() + READY_WITHIN_S
            while _listens(self._port) and time.monotonic() < deadline:
                time.sleep(0.02)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class RedisBroker:
    """Redis that loses nothing when killed, as in production: every write is on disk first."""

    name = "redis"

    def __init__(self) -> None:
        self._port = free_port()
        self._program = _Program(self.name)
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.start()

    def start(self) -> None:
        kept = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        address = ["--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self._program.folder)]
        self._program.run([_found("redis-server"), *address, *kept], self._port)
        # Redis listens before it has loaded its data.
        deadline = time.monotonic() + READY_WITHIN_S
        with Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                    return
                except RedisError:
                    assert time.monotonic() < deadline, "Redis does not become ready"
                    time.sleep(0.02)

    def stop(self) -> None:
        self._program.kill()

    def remove(self) -> None:
        self._program.remove()


class NatsBroker:
    name = "nats"

    def __init__(self) -> None:
        self._port = free_port()
        self._program = _Program(self.name)
        self.url = f"nats://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        address = ["-a", "127.0.0.1", "-p", str(self._port)]
        kept = ["-js", "-sd", str(self._program.folder / "jetstream")]
        self._program.run([_found("nats-server"), *address, *kept], self._port)

    def stop(self) -> None:
        self._program.kill()

    def remove(self) -> None:
        self._program.remove()


class RabbitBroker:
    """RabbitMQ. Its name server, epmd, is a separate process that survives a kill. `remove` ends it."""

    name = "rabbitmq"

    def __init__(self) -> None:
        self._port = free_port()
        self._program = _Program(self.name)
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}/"
        folder = str(self._program.folder)
        self._environment = {
            "HOME": folder,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port()),
            "RABBITMQ_NODENAME": f"foliot{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": f"{folder}/data",
            "RABBITMQ_LOG_BASE": f"{folder}/logs",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            # One scheduler, which sleeps when idle instead of spinning.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
            # epmd accepts the command to end it only if it was started with this setting.
            "ERL_EPMD_RELAXED_COMMAND_CHECK": "true",
        }
        (self._program.folder / "rabbitmq.conf").write_text("vm_memory_high_watermark.absolute = 512MB\n")
        (self._program.folder / "plugins").write_text("[].\n")
        self.start()

    def start(self) -> None:
        if not RABBITMQ.exists():
            raise RuntimeError("RabbitMQ is not installed: `make test` installs it, or says how")
        self._program.run([str(RABBITMQ)], self._port, self._environment)

    def stop(self) -> None:
        self._program.kill()

    def remove(self) -> None:
        self.stop()
        subprocess.run(
            [_found("epmd"), "-relaxed_command_check", "-kill"],
            env={**os.environ, **self._environment},
            capture_output=True,
            check=False,
        )
        self._program.remove()


class KafkaBroker:
    """Apache Kafka in KRaft mode, one node."""

    name = "kafka"
    is_real = True

    def __init__(self) -> None:
        self._port, controller = free_port(), free_port()
        self._program = _Program(self.name)
        self.url = f"kafka://127.0.0.1:{self._port}"
        folder = self._program.folder
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "num.partitions": "3",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # A restarted broker waits until the session of the killed one has expired.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
        }
        self._settings = folder / "server.properties"
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        format_storage = ["kafka.tools.StorageTool", "format", "-t", "foliotfoliotfoliotAAAA"]
        subprocess.run(
            [*self._java(), *format_storage, "-c", str(self._settings)], check=True, capture_output=True
        )
        self.start()

    @staticmethod
    def is_available() -> bool:
        return shutil.which("java") is not None and any(KAFKA_FOLDER.glob("kafka_*.jar"))

    def _java(self) -> list[str]:
        return [
            _found("java"),
            "-Xmx384m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{KAFKA_FOLDER}/*",
        ]

    def start(self) -> None:
        self._program.run([*self._java(), "kafka.Kafka", str(self._settings)], self._port)

    def stop(self) -> None:
        self._program.kill()

    def remove(self) -> None:
        self._program.remove()


class GivenKafka:
    """A Kafka that somebody else runs. The tests neither stop nor remove it."""

    name = "kafka"
    is_real = True

    def __init__(self, address: str) -> None:
        self.url = address if "://" in address else f"kafka://{address}"

    def start(self) -> None: ...

    def stop(self) -> None:
        raise RuntimeError("the Kafka of FOLIOT_TEST_KAFKA is not ours to stop")

    def remove(self) -> None: ...


class MockKafka:
    """librdkafka's mock cluster, in this process, over TCP."""

    name = "kafka"
    is_real = False

    def __init__(self) -> None:
        from confluent_kafka import Producer

        # With this setting the producer starts its own mock brokers and connects to them.
        self._producer: Any = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""})
        metadata = self._producer.list_topics(timeout=10)
        [broker] = metadata.brokers.values()
        self.url = f"kafka://{broker.host}:{broker.port}"

    def start(self) -> None: ...

    def stop(self) -> None:
        raise RuntimeError("librdkafka's mock cluster keeps nothing when it is stopped")

    def remove(self) -> None:
        self._producer = None


def open_kafka() -> KafkaBroker | GivenKafka | MockKafka:
    address = os.environ.get("FOLIOT_TEST_KAFKA")
    if address:
        return GivenKafka(address)
    return KafkaBroker() if KafkaBroker.is_available() else MockKafka()


def describe_kafka() -> str:
    """Describe the Kafka in use, for the test report."""
    if os.environ.get("FOLIOT_TEST_KAFKA"):
        return "Kafka: the broker of FOLIOT_TEST_KAFKA"
    if KafkaBroker.is_available():
        return "Kafka: Apache Kafka, from `make kafka`"
    return "Kafka: librdkafka's mock cluster stands in (no `make kafka` here)"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise RuntimeError(f"{program} is not installed: `make test` installs it, or says how")
    return found
