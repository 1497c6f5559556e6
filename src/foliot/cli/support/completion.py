"""Shell completion of names from the API: with a short timeout, and silent on errors."""

import typer

LIMIT_S = 1.0
MAX_SUGGESTIONS = 200


def schedule_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "schedules", incomplete)


def task_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "task-functions", incomplete)


def queue_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "queues", incomplete, can_search=False)


def instance_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "instances", incomplete, can_search=False, field="instance_id")


def calendar_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "calendars", incomplete, can_search=False)


def secret_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "secrets", incomplete, can_search=False)


def notification_rule_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, "notifications/rules", incomplete, can_search=False)


def _names(
    context: typer.Context, path: str, incomplete: str, *, can_search: bool = True, field: str = "name"
) -> list[str]:
    from foliot.cli.support.rest_client import ApiClient
    from foliot.cli.support.server_choice import find_server

    try:
        server = find_server(context.params.get("url"), context.params.get("key"))
        with ApiClient(server, read_s=LIMIT_S, connect_s=LIMIT_S, tries=1) as api:
            wanted = {"q": incomplete} if can_search and incomplete else {}
            items = api.page(path, {**wanted, "page_size": MAX_SUGGESTIONS}).items
        return [str(item[field]) for item in items if str(item[field]).startswith(incomplete)]
    except Exception:
        # Any error is ignored: there is no place to show it during completion.
        return []
