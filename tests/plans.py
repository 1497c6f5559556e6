"""Query plans of the store's statements, for tests that guard the hot ones."""

import json
import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore

LARGE = ("schedule_t", "execution_t")
OF_FEW = {"idx_execution_open", "idx_execution_held", "idx_schedule_waiting"}
"""Partial indexes with only open, held or waiting rows. Reading one completely is not counted as a scan."""


@dataclass
class Plan:
    """The query plans of the issued statements."""

    indexes: set[str] = field(default_factory=set)
    scans: list[str] = field(default_factory=list)
    """Reads of a whole table or of a whole index."""
    text: str = ""


async def explain(store: SqlStore, pool: Pool, act: Awaitable[Any]) -> tuple[Any, Plan]:
    issued: list[tuple[str, Any]] = []
    engine = store.database.engine(pool).sync_engine

    def listener(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if re.match(r"\s*(SELECT|UPDATE|INSERT|DELETE|WITH)", statement) and "set_config" not in statement:
            issued.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", listener)
    try:
        result = await act
    finally:
        event.remove(engine, "before_cursor_execute", listener)
    assert issued
    plan = Plan()
    for statement, parameters in issued:
        await _explain_one(store, statement, parameters, plan)
    return result, plan


async def _explain_one(store: SqlStore, statement: str, parameters: Any, plan: Plan) -> None:
    is_postgres = store.database.dialect.name == "postgresql"
    command = "EXPLAIN (FORMAT JSON)" if is_postgres else "EXPLAIN QUERY PLAN"
    async with store.database.read(Pool.API) as connection:
        rows = (await connection.exec_driver_sql(f"{command} {statement}", parameters)).all()
    plan.text += f"\n{statement}\n"
    if is_postgres:
        document = rows[0][0]
        found: Any = json.loads(document) if isinstance(document, str) else document
        _read_postgres(found[0]["Plan"], plan)
        return
    for row in rows:
        plan.text += f"    {row.detail}\n"
        if index := re.search(r"USING (?:COVERING )?INDEX (\w+)", row.detail):
            plan.indexes.add(index[1])
        if (table := re.match(r"SCAN (\w+)", row.detail)) and (index is None or index[1] not in OF_FEW):
            plan.scans.append(table[1])


def _read_postgres(node: dict[str, Any], plan: Plan, depth: int = 1) -> None:
    relation, kind = node.get("Relation Name", ""), node["Node Type"]
    plan.text += f"{'    ' * depth}{kind} {relation} {node.get('Index Name', '')}\n"
    if "Index Name" in node:
        plan.indexes.add(node["Index Name"])
        if "Index Cond" not in node and node["Index Name"] not in OF_FEW:
            plan.scans.append(f"{relation} by {node['Index Name']}")
    if kind == "Seq Scan":
        plan.scans.append(relation)
    for child in node.get("Plans", ()):
        _read_postgres(child, plan, depth + 1)


def check(plan: Plan, *wanted: str | tuple[str, ...]) -> None:
    """Assert that no large table is read completely, and that one index of each group is used."""
    assert [each for each in plan.scans if each.startswith(LARGE)] == [], plan.text
    for group in wanted:
        assert plan.indexes.intersection((group,) if isinstance(group, str) else group), plan.text


def primary_key(store: SqlStore, table: str) -> str:
    is_postgres = store.database.dialect.name == "postgresql"
    return f"{table}_pkey" if is_postgres else f"sqlite_autoindex_{table}_1"
