"""`${secret:name}`: find references in a document, look up values, substitute them, and redact them.

`$${secret:name}` escapes a reference: it yields the literal text `${secret:name}`. Substituted values are not
scanned again, so a secret can't refer to another secret.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, quote_plus
from uuid import UUID

from foliot.access.environment import SECRET_VALUE_PREFIX
from foliot.model.errors import FoliotError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.redaction import HIDDEN, pattern_of

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]{0,125}\Z")
MAX_LENGTH = 32 * 1024
MIN_HIDDEN = 4
"""Shorter values are not redacted: they occur in any text, and the redaction marks would reveal them."""

_REFERENCE = re.compile(r"(\$?)\$\{secret:([^{}]*)\}")


class SecretError(FoliotError):
    """A secret can't be read. The message has its name, never its value."""


class MissingSecretError(SecretError):
    """The secret has no value."""

    def __init__(self, name: str) -> None:
        super().__init__(f'there is no secret "{name}"; set it with: foliot secret set {name}')
        self.name = name


class UnreadableSecretError(SecretError):
    """The secret is stored, but can't be decrypted here."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'secret "{name}" was stored under a key that is not in FOLIOT_SECRET_KEY; '
            "put that key back behind the others, or set the secret again"
        )
        self.name = name


def references(document: Any) -> frozenset[str]:
    """Return the secret names that any text of a document refers to, also names that are not valid."""
    return frozenset(
        match[2] for text in _texts(document) for match in _REFERENCE.finditer(text) if not match[1]
    )


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for item in document.values():
            yield from _texts(item)
    elif isinstance(document, list | tuple):
        for item in document:
            yield from _texts(item)


def resolve(document: Any, secrets: Mapping[str, str], encode: Callable[[str], str] = str) -> Any:
    """Return the document with every reference replaced by its value. Raises MissingSecretError."""

    def value_of(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        if match[2] not in secrets:
            raise MissingSecretError(match[2])
        return encode(secrets[match[2]])

    return map_texts(document, lambda text: _REFERENCE.sub(value_of, text))


def map_texts(document: Any, change: Callable[[str], str]) -> Any:
    """Return the document with `change` applied to every text. Field names stay as they are."""
    if isinstance(document, str):
        return change(document)
    if isinstance(document, Mapping):
        return {name: map_texts(item, change) for name, item in document.items()}
    if isinstance(document, list | tuple):
        return [map_texts(item, change) for item in document]
    return document


class Redactor:
    """Redacts secret values from texts and documents, also in URL-encoded and JSON-escaped form."""

    def __init__(self, values: Iterable[str]) -> None:
        self.forms = frozenset(
            form for value in values for form in _forms_of(value) if len(form) >= MIN_HIDDEN
        )
        """Every text that is redacted."""
        self._pattern = pattern_of(self.forms)

    def text(self, text: str, *, is_cut: bool = False) -> str:
        """Return the text without the values. `is_cut`: also redact the beginning of a value at its end."""
        if self._pattern is None:
            return text
        if is_cut:
            text = self._without_beginning(text)
        return self._pattern.sub(HIDDEN, text)

    def document(self, document: Any) -> Any:
        """Redact every text of a document, including field names."""
        if isinstance(document, Mapping):
            return {self.text(str(name)): self.document(item) for name, item in document.items()}
        if isinstance(document, list | tuple):
            return [self.document(item) for item in document]
        if isinstance(document, int | float) and not isinstance(document, bool):
            # A secret made of digits can come back as a number.
            return HIDDEN if self._pattern and self._pattern.search(str(document)) else document
        return self.text(document) if isinstance(document, str) else document

    def _without_beginning(self, text: str) -> str:
        longest = 0
        for form in self.forms:
            for length in range(min(len(form) - 1, len(text)), max(longest, MIN_HIDDEN - 1), -1):
                if text.endswith(form[:length]):
                    longest = length
                    break
        return text[: len(text) - longest] + HIDDEN if longest else text


def _forms_of(value: str) -> set[str]:
    return {
        value,
        value.strip(),
        encode_in_url(value),
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        # Sent in a header as UTF-8 and decoded there as Latin-1, or the other way round.
        _misread(value, "utf-8", "latin-1"),
        _misread(value, "latin-1", "utf-8"),
        # Output is stored line by line, and a key can have several lines.
        *(line.strip() for line in value.splitlines()),
    }


def _misread(value: str, written: str, read: str) -> str:
    try:
        return value.encode(written).decode(read)
    except UnicodeError:
        return value


def encode_in_url(value: str) -> str:
    """Percent-encode a value for a URL. Slashes stay: a webhook's secret is often a part of a path."""
    return quote(value, safe="/")


class StoredSecrets(Protocol):
    async def values(self, host_id: UUID, names: Iterable[str]) -> dict[str, str]:
        """Return the values of those names that the host has set."""
        ...


class SecretResolver:
    """Looks up secrets: first the host's own in the database, then the operator's in environment and files.

    Only the default host can use the operator's secrets, because editors of other hosts are not the operator.
    """

    def __init__(
        self, stored: StoredSecrets | None, environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._stored = stored
        self._environment = environment
        self._folder = folder

    async def values(self, host_id: UUID, names: Iterable[str]) -> dict[str, str]:
        """Return the value of every name. Raises MissingSecretError for the first name without a value."""
        wanted = sorted(set(names))
        for name in wanted:
            if not NAME.match(name):
                raise MissingSecretError(name)
        found = await self._stored.values(host_id, wanted) if self._stored and wanted else {}
        for name in wanted:
            if name not in found:
                if host_id != DEFAULT_HOST_ID:
                    raise MissingSecretError(name)
                found[name] = await self._elsewhere(name)
        return found

    async def fill(self, host_id: UUID, document: Any) -> tuple[Any, Redactor]:
        """Return the document with its secrets substituted, and a redactor for their values."""
        values = await self.values(host_id, references(document))
        return resolve(document, values), Redactor(values.values())

    async def _elsewhere(self, name: str) -> str:
        value = self._environment.get(environment_name(name))
        if value is None and self._folder is not None:
            value = await asyncio.to_thread(_read, self._folder / name)
        if value is None:
            raise MissingSecretError(name)
        if not value.isascii() and value != value.encode("utf-8", "replace").decode():
            raise SecretError(f'secret "{name}" is not UTF-8 text')
        return value


def environment_name(name: str) -> str:
    return SECRET_VALUE_PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_LENGTH + 1)
        text = content.decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(
            f'the file of secret "{path.name}" can\'t be read: {type(error).__name__}'
        ) from None
    if len(content) > MAX_LENGTH:
        raise SecretError(f'the file of secret "{path.name}" is larger than {MAX_LENGTH} bytes')
    # Editors and `echo` add a line break at the end of a file.
    return text.removesuffix("\n").removesuffix("\r")
