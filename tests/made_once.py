"""Creates expensive objects once per test process, instead of once per test."""

import hashlib
import ssl
from functools import cache
from types import FunctionType, NoneType
from typing import Any

import httpx2
from httpx2._transports import default
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache

MAX_STATEMENTS = 5_000
PLAIN = (str, int, FunctionType, NoneType)


def share_compiled_statements() -> None:
    """Let all engines share compiled statements.

    Compiling took a quarter of the time of the tests that use a database. Compiled statements are cached by
    dialect, so the engines must share the dialect as well.
    """
    for dialect in (PGDialect_asyncpg, SQLiteDialect_aiosqlite):
        _make_shared(dialect)
    compiled: LRUCache[Any, Any] = LRUCache(MAX_STATEMENTS)
    initialize = Engine.__init__

    def initialize_shared(self: Engine, *args: Any, **options: Any) -> None:
        initialize(self, *args, **options)
        self._compiled_cache = compiled

    Engine.__init__ = initialize_shared  # type: ignore[method-assign]


def share_authorities() -> None:
    """Let all HTTP clients and instances share the SSL context with the default authorities.

    Reading them takes 40 ms.
    """
    make = httpx2.create_ssl_context
    usual = cache(lambda trust_env: make(trust_env=trust_env))

    def make_shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        return usual(trust_env) if verify is True and cert is None else make(verify, cert, trust_env)

    # The library's own clients call the one, Foliot calls the other.
    default.create_ssl_context = make_shared  # type: ignore[attr-defined]
    httpx2.create_ssl_context = make_shared


def share_slow_hashes() -> None:
    """Compute each slow hash once. The one of the operator's key takes 50 ms in each instance."""
    hashlib.scrypt = cache(hashlib.scrypt)  # type: ignore[assignment]


def _make_shared(dialect: type[Any]) -> None:
    made: dict[frozenset[Any], Any] = {}

    class Shared(dialect):  # type: ignore[misc]
        supports_statement_cache = True

        def __new__(cls, **options: Any) -> Any:
            # Other values are adapters of the driver, created for each engine; compare them by type.
            key = frozenset(
                (name, value if isinstance(value, PLAIN) else type(value)) for name, value in options.items()
            )
            return made.setdefault(key, super().__new__(cls))

        def __init__(self, **options: Any) -> None:
            if "is_shared" not in vars(self):
                super().__init__(**options)
                self.is_shared = True

    Shared.__name__ = dialect.__name__
    dialect.get_dialect_cls = classmethod(lambda _cls, _url: Shared)
