"""Request bodies: parsed strictly, and validated by the model that describes them in the OpenAPI document."""

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from foliot.api.http.strict_json import read_json
from foliot.model.document import Document
from foliot.model.errors import InvalidError, UnsupportedMediaError
from foliot.model.schedule import problems_of

M = TypeVar("M", bound=BaseModel)

BODIES: dict[str, type[BaseModel]] = {}
"""The models of request bodies, by their names in the OpenAPI document."""


class Form(Document):
    """What a body may hold; anything else in it is refused."""


async def _document(request: Request) -> Any:
    body = await request.body()
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaError(
            f"a body of type {kind[:100]} is not understood here; send application/json"
        )
    return read_json(body)


JsonBody = Annotated[Any, Depends(_document)]
"""The parsed JSON of a body. None: there is no body."""


def require_object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        detail = "is missing" if document is None else "is not an object"
        raise InvalidError.at("", "body", detail, "a JSON object")
    return document


def parse(model: type[M], document: Any) -> M:
    """Validate a body with a model. Raises InvalidError, which names every field that is wrong."""
    try:
        return model.model_validate(require_object(document))
    except ValidationError as error:
        raise InvalidError(problems_of(error)) from None


def parse_optional(model: type[M], document: Any) -> M:
    """Parse a body that may be left out. Raises InvalidError, which names every field that is wrong."""
    return parse(model, {} if document is None else document)


def takes(
    model: type[BaseModel], *, is_required: bool = True, media: str = "application/json", example: Any = None
) -> dict[str, Any]:
    """Return the description of a request body, for `openapi_extra` of a route."""
    BODIES[model.__name__] = model
    content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": is_required, "content": {media: content}}}
