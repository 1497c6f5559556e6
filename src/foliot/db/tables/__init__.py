"""Definitions of the tables. The migrations in `migrations/` must produce the same; a test compares them."""
