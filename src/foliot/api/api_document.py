"""Base class of the JSON documents that the API returns."""

from pydantic import BaseModel, ConfigDict


def _title_of(model: type) -> str:
    return model.__name__.removesuffix("Document")


class ApiDocument(BaseModel):
    """A JSON document of a response. In the OpenAPI it is called by its name without `Document`."""

    model_config = ConfigDict(model_title_generator=_title_of)
