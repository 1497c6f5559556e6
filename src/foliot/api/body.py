"""Bodies of requests: read strictly, and checked by the model that describes them in the OpenAPI."""

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from foliot.api.strict_json import read_json
from foliot.model.document import Document
from foliot.model.errors import InvalidError, UnsupportedMediaError
from foliot.model.schedule import problems_of

M = TypeVar("M", bound=BaseModel)

BODIES: dict[str, type[BaseModel]] = {}
"""The models of bodies by the names that the OpenAPI gives them."""


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
"""The document of a body; None: there is no body."""


def require_object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        detail = "is missing" if document is None else "is not an object"
        raise InvalidError.at("", "body", detail, "a JSON object")
    return document


def parse(model: type[M], document: Any) -> M:
    """What a body says. Raises InvalidError, which names every field that is wrong."""
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
    """For `openapi_extra` of a route: what its body is."""
    BODIES[model.__name__] = model
    content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": is_required, "content": {media: content}}}
