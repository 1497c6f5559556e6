"""JSON merge patch (RFC 7396), with rules for a change of the kind of trigger or target."""

from collections.abc import Mapping
from typing import Any

from foliot.model.kind import TRIGGERS


def merge(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with a patch applied: null removes a field, objects are merged, others replace."""
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            old = merged.get(name)
            merged[name] = merge(old if isinstance(old, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def merge_definition(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a patch to a schedule's definition.

    A trigger or target of another kind replaces the old one, because fields of the old kind are not valid.
    """
    kept = dict(document)
    for name in ("trigger", "target"):
        old, new = document.get(name), patch.get(name)
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            continue
        if "kind" in new and new["kind"] != old.get("kind"):
            kept[name] = {}
        elif name == "trigger" and old.get("kind") in TRIGGERS:
            forms = TRIGGERS[old["kind"]].short_forms
            replaced = {field for short in new for field in forms.get(short, ())}
            kept[name] = {field: value for field, value in old.items() if field not in replaced}
    return merge(kept, patch)
