"""Base class of everything that users write as JSON: definitions, policies and request bodies."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


def _refuse_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "Input should be a number, not true or false")
    return value


def _without_booleans(schema: Any) -> Any:
    """Return the schema with a check before each int and float, at any depth."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_without_booleans, schema))
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("int", "float"):
        return core_schema.no_info_before_validator_function(_refuse_boolean, schema)
    if schema.get("type") == "function-before" and schema["function"].get("function") is _refuse_boolean:
        return schema  # a nested model, which has the check already
    # "default" and "metadata" hold user values, which may look like a schema.
    return {
        key: part if key in ("default", "metadata", "function") else _without_booleans(part)
        for key, part in schema.items()
    }


class Document(BaseModel):
    """A value users write: unknown fields are refused, and once made it never changes.

    A number must be a number. Pydantic would take `true` as 1 wherever an int or a float is wanted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = _without_booleans(handler(source))
        return schema
