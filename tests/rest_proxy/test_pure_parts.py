"""The parts of the REST proxy that are pure: what decides, without a server."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.process.json_text import NotJsonError, read_json
from rest_proxy.consumers.reading import Reading
from rest_proxy.consumers.state import InstanceState, Mode
from rest_proxy.formats import Format
from rest_proxy.json_text import Elements, write_json
from rest_proxy.refusals import RestError
from rest_proxy.settings import Settings, SettingsError
from rest_proxy.v3.rate import RateLimit
from rest_proxy.v3.streaming import ObjectStream
from rest_proxy.web.addresses import base_url
from rest_proxy.web.media import answered_type, wanted_format

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


# --- JSON piece by piece ---


@given(st.lists(JSON_VALUES, max_size=5), st.dictionaries(st.sampled_from("xyz"), JSON_VALUES))
def test_elements_are_those_that_json_has(records: list[Any], others: dict[str, Any]) -> None:
    elements = Elements(json.dumps({"x": others.get("x"), "records": records, **others}), "records")
    assert list(elements) == records
    assert elements.members == {"x": others.get("x"), **others}


@given(JSON_VALUES)
def test_json_is_written_as_it_is_read(value: Any) -> None:
    assert read_json(write_json(value).decode()) == value


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"records": 1}', '{"records": [1 2]}', '{"records": [1]} x', "{1: 2}", "{,}"],
)
def test_what_is_no_object_with_a_list_is_refused(text: str) -> None:
    with pytest.raises(NotJsonError):
        list(Elements(text, "records"))


def test_numbers_that_json_lacks_are_refused_and_large_ones_are_exact() -> None:
    assert read_json(str(2**200)) == 2**200
    for text in ("NaN", "-Infinity", "1e999", "1" * 5000, "[" * 100_000):
        with pytest.raises(NotJsonError):
            read_json(text)


@given(
    st.lists(st.dictionaries(st.text("ab"), JSON_VALUES, max_size=2), max_size=4),
    st.lists(st.integers(1, 20), min_size=1, max_size=30),
)
def test_a_stream_gives_the_same_records_however_it_is_cut(
    records: list[Any], cuts: list[int]
) -> None:
    body = b" ".join(json.dumps(each).encode() for each in records)
    stream, found, at = ObjectStream(1 << 20), [], 0
    for size in cuts:
        found += list(stream.feed(body[at : at + size]))
        at += size
    found += list(stream.feed(body[at:]))
    assert found + list(stream.feed(b"", is_last=True)) == records


def test_a_string_in_small_pieces_is_not_parsed_over_and_over() -> None:
    stream = ObjectStream(10 << 20)
    list(stream.feed(b'{"value": "'))
    for _ in range(20_000):
        assert list(stream.feed(b"}" * 50)) == []
    assert stream._parsed <= 8 * stream._received + (2 << 20)
    assert list(stream.feed(b'"}', is_last=True))


def test_a_record_larger_than_allowed_ends_the_stream() -> None:
    stream = ObjectStream(100)
    with pytest.raises(RestError) as refused:
        list(stream.feed(b'{"value": "' + b"x" * 200))
    assert refused.value.error_code == 413


# --- consumer instances ---


def test_an_instance_expires_when_nobody_calls_it_and_never_during_a_call() -> None:
    state = InstanceState(timeout_seconds=5, expires_at=10)
    assert (state.is_expired(9), state.is_expired(10)) == (False, True)
    state.begin_call()
    assert not state.is_expired(100)
    state.end_call(100)
    assert (state.is_expired(104), state.is_expired(105)) == (False, True)


@pytest.mark.parametrize(
    ("mode", "can_subscribe", "can_assign"),
    [(Mode.NEW, True, True), (Mode.SUBSCRIBED, True, False), (Mode.ASSIGNED, False, True)],
)
def test_every_cell_of_the_transition_table(
    mode: Mode, can_subscribe: bool, can_assign: bool
) -> None:
    for call, is_allowed, after in (
        (InstanceState.subscribe, can_subscribe, Mode.SUBSCRIBED),
        (InstanceState.assign, can_assign, Mode.ASSIGNED),
        (InstanceState.unsubscribe, True, Mode.NEW),
    ):
        state = InstanceState(1, 1, mode)
        if is_allowed:
            call(state)
            assert state.mode is after
        else:
            with pytest.raises(RestError) as refused:
                call(state)
            assert (refused.value.error_code, state.mode) == (40903, mode)


def test_only_what_was_given_and_is_not_committed_is_to_be_committed() -> None:
    state = InstanceState(1, 1)
    state.deliver(("t", 0), 4)
    state.deliver(("t", 1), 7)
    assert state.uncommitted() == {("t", 0): 5, ("t", 1): 8}
    state.commit({("t", 0): 5})
    assert state.uncommitted() == {("t", 1): 8}
    state.lose([("t", 1)])
    assert state.uncommitted() == {}


def test_a_read_gives_the_first_record_and_then_what_fits() -> None:
    reading = Reading(max_bytes=10, min_bytes=-1)
    assert reading.has_room(1000)
    reading.take(4)
    assert (reading.has_room(6), reading.has_room(7)) == (True, False)
    assert not reading.is_enough()
    assert not Reading(max_bytes=0, min_bytes=0).is_enough()
    few = Reading(max_bytes=10, min_bytes=3)
    few.take(3)
    assert few.is_enough()


# --- rates, caches, settings ---


def test_a_rate_lets_through_what_it_says_and_no_more() -> None:
    limit = RateLimit(records_per_second=2, bytes_per_second=1000)
    limit.check(10, 0.0)
    limit.check(10, 0.0)
    with pytest.raises(RestError) as refused:
        limit.check(10, 0.0)
    assert refused.value.status == 429
    limit.check(10, 1.0)
    RateLimit(None, 1).check(1 << 40, 0.0)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"port": "1"}, "port"),
        ({"consumer.request.timeout.ms": "soon"}, "consumer.request.timeout.ms"),
        ({"api.v2.enable": "perhaps"}, "api.v2.enable"),
        ({"listeners": "ftp://127.0.0.1:1"}, "listeners"),
        ({"listeners": "http://127.0.0.1:99999"}, "listeners"),
        ({"api.v3.produce.batch.maximum.entries": "51"}, "entries"),
        ({"request.max.bytes": "-1"}, "request.max.bytes"),
        ({"listener": "http://127.0.0.1:1"}, "listener is no setting .* mean 'listeners'"),
    ],
)
def test_a_wrong_setting_is_named(said: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Settings.of(said)


# --- what a request asks for ---


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "http://here:1"),
        ({"X-Forwarded-Proto": "https"}, "https://here:1"),
        ({"X-Forwarded-Host": "a.example, b.example"}, "http://a.example"),
        ({"X-Forwarded-Host": "a.example", "X-Forwarded-Port": "8443"}, "http://a.example:8443"),
        ({"X-Forwarded-Prefix": "/kafka/"}, "http://here:1/kafka"),
        ({"Forwarded": 'for=1.2.3.4;host="a.example:5";proto=https'}, "https://a.example:5"),
        ({"X-Forwarded-Host": "a.example/evil?"}, "http://here:1"),
        ({"X-Forwarded-Proto": "javascript"}, "http://here:1"),
        ({"X-Forwarded-Prefix": "/a b\r\n"}, "http://here:1"),
    ],
)
def test_addresses_are_as_the_caller_reaches_the_proxy(
    headers: dict[str, str], expected: str
) -> None:
    told = {"scheme": "http", "host": "here:1", "advertised": "", "host_name": ""}
    assert base_url(headers, **told) == expected


def test_settings_say_more_about_addresses_than_headers() -> None:
    told = {"scheme": "http", "host": "here:1", "advertised": "", "host_name": ""}
    headers = {"X-Forwarded-Host": "a.example"}
    named = {**told, "host_name": "rest.example"}
    assert base_url(headers, **named) == "http://rest.example:1"
    advertised = {**told, "advertised": "https://rest.example/"}
    assert base_url(headers, **advertised) == "https://rest.example"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, None),
        ("*/*", None),
        ("application/json", None),
        ("application/vnd.kafka.avro.v2+json", Format.AVRO),
        ("text/html, application/vnd.kafka.json.v2+json;q=0.5", Format.JSON),
    ],
)
def test_the_format_a_caller_accepts(accept: str | None, expected: Format | None) -> None:
    assert wanted_format(accept) == expected


def test_the_best_type_that_is_offered_is_answered() -> None:
    assert answered_type("b;q=0.1, a;q=0.9", "b", "a") == "a"
    for nothing in ("text/html", "application/vnd.kafka.string.v2+json", "a;q=0", "a;q=..."):
        with pytest.raises(RestError):
            answered_type(nothing, "a")
