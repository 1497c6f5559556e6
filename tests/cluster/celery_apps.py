"""Other ways in which the Celery application of the tests may be set up."""

from celery import Celery

from tests.servers import free_port


def over(broker: str, backend: str | None = None) -> Celery:
    """The Celery application at another broker."""
    return Celery("shop", broker=broker, backend=backend, set_as_current=False)


without_backend = over("memory://")
"""Whoever uses it says where its broker is."""
without_broker = over(f"redis://127.0.0.1:{free_port()}/0")
