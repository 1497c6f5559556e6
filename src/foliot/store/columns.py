"""Rows of a batch as columns to select from, in statements that are built once and run for every batch.

Building a statement of SQLAlchemy's takes a millisecond, as long as SQLite takes for thirty rows. So the
batch is laid out first; what its layout leaves to vary are arguments, and the statement is kept by its shape.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, bindparam

from foliot.store.dialect import Columns, Dialect, Rows


class Shape(NamedTuple):
    """What of a batch decides the text of its statement. Equal shapes share one."""

    shared: tuple[str, ...]
    """Columns that hold one value in all rows."""
    same_as: tuple[tuple[str, str], ...]
    """For every other column the one that holds its values: itself, or a twin."""


class Batch(NamedTuple):
    shape: Shape
    arguments: Mapping[str, Any]
    """What to run the statement with."""


class BatchColumns:
    """Rows of given columns as a table, and each column of it as an expression.

    A value that all rows share is one parameter instead of a column: most columns of a batch hold one value,
    and the driver takes half a microsecond for each element of an array. Not so for the columns `by` which
    rows are told apart or found, if a constant there would tempt the planner to another index.
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
        """A table of the varying columns, and all columns, for a statement that runs with the arguments."""
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
    """The very same values: without jitter a schedule's next run is its next fire time."""
    return some[0] is others[0] and all(one is other for one, other in zip(some, others, strict=True))
