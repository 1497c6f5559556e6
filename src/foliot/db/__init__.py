"""The database: connections, the two dialects, the schema, migrations and hints.

What differs between PostgreSQL and SQLite is a Dialect, in `postgres.py` and `sqlite.py`. Statements are
written once, in SQLAlchemy Core, and stand beside the service that owns them. `rows/` has those that several
share.
"""
