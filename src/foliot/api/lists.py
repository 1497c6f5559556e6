"""The response model of every list."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

T = TypeVar("T")


class ListOf(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    next_page_token: str = Field(description="`page_token` for the next page; empty: this was the last.")
