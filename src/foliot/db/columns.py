"""Pass the rows of a batch as columns to statements that are built once and run for every batch.

Building a SQLAlchemy statement takes a millisecond, as long as SQLite takes for thirty rows. So a batch is
first split into a shape and arguments. The shape decides the statement's text and is its cache key.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, bindparam

from foliot.db.dialect import Columns, Dialect, Rows


class Shape(NamedTuple):
    """The part of a batch that decides the text of its statement. Equal shapes share one statement."""

    shared: tuple[str, ...]
    """Columns that hold the same value in all rows."""
    same_as: tuple[tuple[str, str], ...]
    """For every other column, the column that holds its values: itself, or another with identical values."""


class Batch(NamedTuple):
    shape: Shape
    arguments: Mapping[str, Any]
    """Parameters to run the statement with."""


class BatchColumns:
    """Turns rows with given columns into a table, and each column into an SQL expression.

    A value that all rows share becomes one parameter instead of a column: most columns of a batch hold one
    value, and the driver takes half a microsecond for each element of an array. The key columns `by` stay
    columns where a constant would make the planner choose another index.
    """

    def __init__(self, name: str, columns: Columns, *, by: Sequence[str]) -> None:
        self._name = name
        self._columns = columns
        self._by = by

    def lay_out(self, dialect: Dialect, rows: Rows) -> Batch:
        arguments: dict[str, Any] = {}
        kept: dict[str, Sequence[Any]] = {}
        shared, same_as = [], []
        for label, values in zip(self._columns, zip(*rows, strict=True), strict=True):
            if self._may_share(dialect, label) and values.count(values[0]) == len(values):
                shared.append(label)
                arguments[self._argument(label)] = values[0]
            else:
                twin = next((other for other in kept if _are_same(kept[other], values)), label)
                same_as.append((label, twin))
                kept.setdefault(twin, values)
        varying = {label: self._columns[label] for label in kept}
        arguments |= dialect.arguments(self._name, varying, list(kept.values()))
        return Batch(Shape(tuple(shared), tuple(same_as)), arguments)

    def table(self, dialect: Dialect, shape: Shape) -> tuple[FromClause, Mapping[str, ColumnElement[Any]]]:
        """Return a table of the varying columns, and an expression for every column.

        The statement must run with the arguments of a batch of this shape.
        """
        same_as = dict(shape.same_as)
        varying = {label: self._columns[label] for label, twin in shape.same_as if label == twin}
        table = dialect.table(self._name, varying)
        return table, {
            label: table.c[same_as[label]]
            if label in same_as
            else bindparam(self._argument(label), type_=kind)
            for label, kind in self._columns.items()
        }

    def _may_share(self, dialect: Dialect, label: str) -> bool:
        return label not in self._by or (dialect.shares_keys and label != self._by[0])

    def _argument(self, label: str) -> str:
        return f"{self._name}_shared_{label}"


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether both hold identical objects: without jitter, a schedule's next run is its next fire time."""
    return some[0] is others[0] and all(one is other for one, other in zip(some, others, strict=True))
