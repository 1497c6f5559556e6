"""Other configurations of the tests' Celery application."""

from celery import Celery

from tests.servers import free_port


def over(broker: str, backend: str | None = None) -> Celery:
    """Return the Celery application with another broker."""
    return Celery("shop", broker=broker, backend=backend, set_as_current=False)


without_backend = over("memory://")
"""A test that uses it must set the broker."""
without_broker = over(f"redis://127.0.0.1:{free_port()}/0")
