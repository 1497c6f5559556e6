"""References to secrets: found, looked up, put in place, hidden."""

from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest

from foliot.access.secrets import (
    MAX_LENGTH,
    MissingSecretError,
    Redactor,
    SecretError,
    SecretResolver,
    encode_in_url,
    references,
    resolve,
)
from foliot.model.ids import DEFAULT_HOST_ID

DOCUMENT = {
    "url": "https://agent.example/${secret:path}",
    "headers": {"Authorization": "Bearer ${secret:agent_token}"},
    "body": [{"deep": ["${secret:a.b-c}", 1, None, "$${secret:not_one}"]}],
}


def test_references_are_found_wherever_text_is() -> None:
    assert references(DOCUMENT) == {"path", "agent_token", "a.b-c"}


def test_names_of_fields_are_not_references() -> None:
    document = {"${secret:name}": 1}
    assert references(document) == frozenset()
    assert resolve(document, {}) == document


def test_every_reference_is_replaced_by_its_value() -> None:
    values = {"path": "p", "agent_token": "t", "a.b-c": "x"}
    assert resolve(DOCUMENT, values) == {
        "url": "https://agent.example/p",
        "headers": {"Authorization": "Bearer t"},
        "body": [{"deep": ["x", 1, None, "${secret:not_one}"]}],
    }


def test_two_dollars_stand_for_the_text_itself() -> None:
    assert resolve("$${secret:a} $$${secret:a} ${secret:a}", {"a": "v"}) == "${secret:a} $${secret:a} v"


def test_a_value_is_not_read_for_references() -> None:
    assert resolve("${secret:a}", {"a": "${secret:b}", "b": "v"}) == "${secret:b}"


def test_a_missing_secret_is_named() -> None:
    with pytest.raises(MissingSecretError) as caught:
        resolve("${secret:a}", {"b": "v"})
    assert caught.value.name == "a"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("s3cret", "it is s3cret."),
        ('a"b\\c', '{"x": "a\\"b\\\\c"}'),
        ("a b&c=ä/", f"?x={encode_in_url('a b&c=ä/')}&y"),
        ("a b&c/d", "a+b%26c%2Fd"),
        ("line\nbreak", '{"x": "line\\nbreak"}'),
        ("müll-eimer", '{"x": "m\\u00fcll-eimer"}'),
        (" padded ", "[padded]"),
    ],
)
def test_a_value_is_hidden_in_every_form(value: str, shown: str) -> None:
    hidden = Redactor([value]).text(shown)
    assert "***" in hidden
    assert len(hidden) < len(shown)


def test_the_longest_value_is_hidden_whole() -> None:
    assert Redactor(["abcd", "abcdefgh"]).text("abcdefgh abcd") == "*** ***"


def test_a_document_is_redacted_in_names_numbers_and_texts() -> None:
    document = {"x s3cret": ["s3cret", 12345678, True, None, 1]}
    assert Redactor(["s3cret", "12345678"]).document(document) == {"x ***": ["***", "***", True, None, 1]}


def test_a_value_too_short_to_hide_stays() -> None:
    assert Redactor(["abc", ""]).text("abcabc") == "abcabc"


@pytest.mark.parametrize("kept", range(4, 10))
def test_the_beginning_of_a_value_is_hidden_where_a_text_was_cut(kept: int) -> None:
    value = "0123456789"
    assert Redactor([value, "0199"]).text("it is " + value[:kept], is_cut=True) == "it is ***"


def test_an_end_that_begins_no_value_stays() -> None:
    assert Redactor(["0123456789"]).text("it is 012", is_cut=True) == "it is 012"
    assert Redactor(["0123456789"]).text("it is 01234", is_cut=False) == "it is 01234"


class Stored:
    """A store that has what it was given."""

    def __init__(self, **values: str) -> None:
        self._values = values
        self.asked: list[tuple[UUID, list[str]]] = []

    async def values(self, host_id: UUID, names: Iterable[str]) -> dict[str, str]:
        self.asked.append((host_id, list(names)))
        return {name: self._values[name] for name in names if name in self._values}


async def test_the_database_comes_first_then_the_environment_then_a_file(tmp_path: Path) -> None:
    for name in ("one", "two", "three.pem"):
        (tmp_path / name).write_text(f"file {name}\n")
    environment = {"FOLIOT_SECRET_VALUE_ONE": "env one", "FOLIOT_SECRET_VALUE_TWO": "env two"}
    stored = Stored(one="stored one")
    found = await SecretResolver(stored, environment, tmp_path).values(
        DEFAULT_HOST_ID, ["three.pem", "one", "two", "one"]
    )
    assert found == {"one": "stored one", "two": "env two", "three.pem": "file three.pem"}
    assert stored.asked == [(DEFAULT_HOST_ID, ["one", "three.pem", "two"])]


async def test_characters_that_no_variable_has_are_underscores() -> None:
    environment = {"FOLIOT_SECRET_VALUE_A_B_C9": "v"}
    assert await SecretResolver(None, environment).values(DEFAULT_HOST_ID, ["a.b-c9"]) == {"a.b-c9": "v"}


async def test_a_document_is_filled_and_comes_with_what_hides_its_secrets_again() -> None:
    resolver = SecretResolver(Stored(token="s3cret"), {})
    filled, redactor = await resolver.fill(DEFAULT_HOST_ID, {"a": ["${secret:token}", 1]})
    assert filled == {"a": ["s3cret", 1]}
    assert redactor.text("it is s3cret") == "it is ***"


async def test_bytes_of_the_environment_that_are_no_text_are_refused() -> None:
    with pytest.raises(SecretError, match='"a" is not UTF-8'):
        await SecretResolver(None, {"FOLIOT_SECRET_VALUE_A": "x\udcff"}).values(DEFAULT_HOST_ID, ["a"])


async def test_nothing_is_asked_when_nothing_is_wanted() -> None:
    stored = Stored()
    assert await SecretResolver(stored, {}).values(DEFAULT_HOST_ID, []) == {}
    assert stored.asked == []


@pytest.mark.parametrize("name", ["missing", "../outside", "a/b", "", ".hidden", "1st", "a" * 127, "a\n"])
async def test_a_name_that_nobody_set_is_named_and_no_name_leads_out_of_the_folder(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("value")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / ".hidden").write_text("value")
    with pytest.raises(MissingSecretError) as caught:
        await SecretResolver(None, {}, tmp_path / "secrets").values(DEFAULT_HOST_ID, [name])
    assert caught.value.name == name


@pytest.mark.parametrize("content", [b"\xff\xfe\xfd", b"x" * (MAX_LENGTH + 1)])
async def test_a_file_that_is_no_secret_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(SecretError, match='file of secret "a"'):
        await SecretResolver(None, {}, tmp_path).values(DEFAULT_HOST_ID, ["a"])
