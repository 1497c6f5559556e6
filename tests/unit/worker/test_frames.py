"""How worker, template and children talk."""

import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.worker.isolation.frames import FrameError, FrameReader, encode, receive, with_length

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=4), st.integers(1, 40))
def test_frames_come_out_as_they_went_in_whatever_the_pieces(
    frames: list[dict[str, object]], size: int
) -> None:
    data = b"".join(encode(frame) for frame in frames)
    reader = FrameReader()
    got = [frame for at in range(0, len(data), size) for frame in reader.feed(data[at : at + size])]
    assert got == frames


def test_half_a_character_travels() -> None:
    assert FrameReader().feed(encode({"name": "\ud800"})) == [{"name": "\ud800"}]


def test_a_frame_that_is_too_long_is_refused_before_it_is_there() -> None:
    reader = FrameReader(limit=100)
    assert reader.feed(with_length(b"{" + b" " * 98 + b"}")) == [{}]
    with pytest.raises(FrameError, match="101 bytes"):
        reader.feed(with_length(b"x" * 101)[:4])


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[1]", b"null"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(with_length(body))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_descriptors_travel_with_their_frame_and_are_not_passed_on(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    one, other = ends
    reading, writing = os.pipe()
    socket.send_fds(one, [encode({"fork": 1})], [writing])
    one.sendall(encode({"signal": 15}))
    os.close(writing)
    frame, (received,) = receive(other, 3)
    assert frame == {"fork": 1}
    assert receive(other, 3) == ({"signal": 15}, [])
    assert not os.get_inheritable(received)
    os.write(received, b"!")
    assert os.read(reading, 1) == b"!"
    os.close(received)
    os.close(reading)


def test_a_closed_connection_is_told_from_one_that_broke_off(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    one, other = ends
    one.sendall(encode({"whole": True}) + encode({"cut": True})[:-1])
    one.shutdown(socket.SHUT_WR)
    assert receive(other)[0] == {"whole": True}
    with pytest.raises(FrameError, match="in the middle"):
        receive(other)
    assert receive(other) == (None, [])
