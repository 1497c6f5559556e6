"""How a database gets from one version of the schema to the next (Alembic).

Rules: a migration only adds, so that instances of the version before keep running on the new schema; what is
no longer used is dropped one release later. Every migration runs on both databases.
"""
