"""The collection that every table belongs to."""

from sqlalchemy import MetaData

metadata = MetaData()
