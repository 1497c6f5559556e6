"""What is kept of what code says: in bounds, and without secrets however it is cut."""

import json

from foliot.access.secrets import Redactor
from foliot.access.stored_text import RESULT_BYTES, TEXT_LENGTH, kept_end, kept_result, kept_text

SECRET = 'tok"en\\with-quotes-0123456789'
HIDING = Redactor([SECRET])


def test_a_secret_is_hidden_before_a_result_is_cut() -> None:
    text = kept_result({"echo": SECRET, "pad": "x" * 2 * RESULT_BYTES}, HIDING)
    assert text is not None
    assert len(text) <= RESULT_BYTES
    assert "tok" not in text


def test_a_secret_at_the_edge_of_what_is_kept_leaves_no_piece() -> None:
    assert "tok" not in kept_text("x" * (TEXT_LENGTH - 5) + SECRET, HIDING)
    assert "6789" not in kept_end(SECRET + "x" * (TEXT_LENGTH - 5), HIDING)


def test_a_secret_of_digits_inside_a_number_leaves_the_result_json() -> None:
    text = kept_result({"account": 9123456, "name": "kept"}, Redactor(["12345"]))
    assert text is not None
    assert json.loads(text) == {"account": "***", "name": "kept"}


def test_every_line_of_a_secret_is_hidden() -> None:
    key = "-----BEGIN KEY-----\nc2VjcmV0\nb2YgbWFueQ==\n-----END KEY-----\n"
    redactor = Redactor([key])
    assert [redactor.text(line) for line in key.splitlines()] == ["***"] * 4


def test_what_json_can_not_hold_is_kept_all_the_same() -> None:
    assert kept_result(float("inf")) == "null"
    assert kept_result({"a": "b\0c"}) == '{"a":"b\\ufffdc"}'
    assert kept_result(None) is None
    shown = kept_result(object())
    assert shown is not None
    assert "object" in shown
