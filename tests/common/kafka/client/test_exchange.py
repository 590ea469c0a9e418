"""One connection without IO: versions, the login, and answers that are none."""

from typing import Any

import pytest

from common.credentials.sasl_client import Begun, PlainClient
from common.kafka.client.exchange import MAX_ANSWER_BYTES, ConnectionFailed, Exchange, Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    RequestHeader,
    decode_request,
    encode_response,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse

PLAIN = Begun(PlainClient("alice", "secret"), b"\0alice\0secret")


def answer_to(frame: bytes, answer: Message, version: int | None = None) -> bytes:
    """Return what a node sends as the answer to a frame, without its size."""
    header, _ = decode_request(memoryview(frame)[4:])
    if version is not None:
        header = RequestHeader(header.api_key, version, header.correlation_id, header.client_id)
    return b"".join(map(bytes, encode_response(header, answer)))[4:]  # type: ignore[arg-type]


def follow(exchange: Exchange, steps: Steps, *answers: Message) -> list[Message]:
    """Give steps their answers; return their requests."""
    asked = []
    try:
        request = next(steps)
        for answer in answers:
            asked.append(request)
            request = steps.send(exchange.decode(answer_to(exchange.encode(request), answer)))
        pytest.fail(f"one more request: {request}")
    except StopIteration:
        return asked


def versions(**highest: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=ApiKey[name], min_version=0, max_version=version)
            for name, version in highest.items()
        ]
    )


def negotiated(**highest: int) -> Exchange:
    exchange = Exchange(("node", 9092), "test")
    follow(exchange, exchange.negotiate(), versions(**highest))
    return exchange


def test_a_request_goes_out_in_the_highest_common_version() -> None:
    exchange = negotiated(METADATA=5)
    frame = exchange.encode(MetadataRequest(topics=None))
    assert decode_request(memoryview(frame)[4:])[0].api_version == 5
    assert exchange.version_of(ApiKey.METADATA, max_version=3) == 3


def test_a_node_that_knows_no_new_version_is_asked_in_version_0() -> None:
    exchange = Exchange(("node", 9092), "test")
    steps = exchange.negotiate()
    frame = exchange.encode(next(steps))
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    again = steps.send(exchange.decode(answer_to(frame, refusal, version=0)))
    frame = exchange.encode(again)
    assert decode_request(memoryview(frame)[4:])[0].api_version == 0
    with pytest.raises(StopIteration):
        steps.send(exchange.decode(answer_to(frame, versions(METADATA=1))))
    assert exchange.version_of(ApiKey.METADATA) == 1


@pytest.mark.parametrize("request_", [MetadataRequest(topics=None)])
def test_an_api_that_the_node_lacks_is_refused_before_it_is_sent(request_: Message) -> None:
    exchange = negotiated(FETCH=4)
    with pytest.raises(KafkaError, match="node:9092 does not support METADATA") as raised:
        exchange.encode(request_)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_a_login() -> None:
    exchange = negotiated(SASL_HANDSHAKE=1, SASL_AUTHENTICATE=1)
    assert len(follow(exchange, exchange.choose("PLAIN"), SaslHandshakeResponse())) == 1
    sent: list[Any] = follow(exchange, exchange.log_in(PLAIN), SaslAuthenticateResponse())
    assert [bytes(each.auth_bytes) for each in sent] == [PLAIN.first]


def test_a_login_that_is_refused() -> None:
    exchange = negotiated(SASL_HANDSHAKE=1, SASL_AUTHENTICATE=1)
    refused = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="who are you"
    )
    with pytest.raises(KafkaError, match="who are you"):
        follow(exchange, exchange.log_in(PLAIN), refused)


def test_a_mechanism_that_is_not_enabled() -> None:
    exchange = negotiated(SASL_HANDSHAKE=1, SASL_AUTHENTICATE=1)
    refused = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-512"]
    )
    with pytest.raises(KafkaError, match="does not enable PLAIN; there are: SCRAM-SHA-512"):
        follow(exchange, exchange.choose("PLAIN"), refused)


@pytest.mark.parametrize("size", [-1, 0, 3, MAX_ANSWER_BYTES + 1])
def test_a_size_that_no_answer_has(size: int) -> None:
    with pytest.raises(ConnectionFailed, match=f"an answer of {size} bytes"):
        negotiated().size_of(size.to_bytes(4, "big", signed=True))


def test_answers_that_belong_to_no_request() -> None:
    exchange = negotiated(METADATA=5)
    frame = exchange.encode(MetadataRequest(topics=None))
    good = answer_to(frame, MetadataResponse())
    with pytest.raises(ConnectionFailed, match="another request"):
        exchange.decode(b"\x7f" + good[1:])
    with pytest.raises(ConnectionFailed, match="no request"):
        exchange.decode(good)


def test_an_answer_that_is_cut_off() -> None:
    exchange = negotiated(METADATA=5)
    good = answer_to(exchange.encode(MetadataRequest(topics=None)), MetadataResponse())
    with pytest.raises(ConnectionFailed):
        exchange.decode(good[:-1])
