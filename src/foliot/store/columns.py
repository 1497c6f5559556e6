"""Rows of a batch as columns to select from."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, literal

from foliot.store.dialect import Columns, Dialect, Rows


def spread(
    dialect: Dialect, name: str, columns: Columns, rows: Rows, *, by: Sequence[str]
) -> tuple[FromClause, Mapping[str, ColumnElement[Any]]]:
    """The rows as a table, and each column of it as an expression.

    A value that all rows share is one parameter instead of a column: most columns of a batch hold one value,
    and the driver takes half a microsecond for each element of an array. Not so for the columns `by` which
    rows are told apart or found, if a constant there would tempt the planner to another index.
    """
    by_column = list(zip(*rows, strict=True))
    shared = {
        label: values[0]
        for label, values in zip(columns, by_column, strict=True)
        if (label not in by or (dialect.shares_keys and label != by[0])) and _is_one(values)
    }
    kept: dict[str, Sequence[Any]] = {}
    same_as: dict[str, str] = {}
    for label, values in zip(columns, by_column, strict=True):
        if label not in shared:
            twin = next((other for other in kept if _are_same(kept[other], values)), label)
            same_as[label] = twin
            kept.setdefault(twin, values)
    varying = {label: columns[label] for label in kept}
    table = dialect.rows(name, varying, list(zip(*kept.values(), strict=True)))
    return table, {
        label: literal(shared[label], kind) if label in shared else table.c[same_as[label]]
        for label, kind in columns.items()
    }


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """The very same values: without jitter a schedule's next run is its next fire time."""
    return some[0] is others[0] and all(one is other for one, other in zip(some, others, strict=True))


def _is_one(values: Sequence[Any]) -> bool:
    return values.count(values[0]) == len(values)
