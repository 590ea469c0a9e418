"""A connection to another node: answers in order, failures told, no busy loop when it is down."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from broker.server.network.client_connection import (
    ClientConnection,
    ClientSettings,
    compute_pause_ms,
)
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import RequestHeader, decode_request, encode_response
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from common.kafka.protocol.messages.vote import (
    PartitionData,
    TopicData,
    VoteRequest,
    VoteResponse,
)
from tests.lib.quorum_nodes import free_ports, run, until

VERSION = 2
PATIENT_MS = 60_000
SILENCE_MS = 500
"""Long enough for the connection to be made meanwhile, on a machine that has much else to do."""
SETTINGS = ClientSettings(
    client_id="test", max_frame_bytes=1_000, connect_timeout_ms=PATIENT_MS, retry_backoff_ms=1
)
Answer = Callable[[RequestHeader], list[bytes]]


def response(header: RequestHeader, error_code: int = 0) -> bytes:
    return b"".join(encode_response(header, VoteResponse(error_code=error_code)))


class Server:
    """Says that it serves Vote, then answers each request with what `answer` makes of it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.served = ApiVersion(api_key=ApiKey.VOTE, min_version=0, max_version=VERSION)
        self.greeting_error = 0
        self.connection_count = 0

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = ("127.0.0.1", int(self._server.sockets[0].getsockname()[1]))
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, _ = decode_request(await reader.readexactly(size))
                is_greeting = header.api_key == ApiKey.API_VERSIONS
                parts = [self._greeting(header)] if is_greeting else self._answer(header)
                for part in parts:
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _greeting(self, header: RequestHeader) -> bytes:
        answer = ApiVersionsResponse(error_code=self.greeting_error, api_keys=[self.served])
        return b"".join(encode_response(header, answer))


def scenario_with(
    answer: Answer,
    play: Callable[[Server, ClientConnection, list[Message | None]], Awaitable[None]],
) -> None:
    async def scenario() -> None:
        async with Server(answer) as server:
            loop = asyncio.get_running_loop()
            connection = ClientConnection(loop, server.address, SETTINGS)
            await play(server, connection, [])
            connection.close()

    run(scenario)


def test_answers_come_in_the_order_of_the_requests():
    numbers = iter(range(1, 10))

    async def play(server, connection, answers) -> None:
        for _ in range(3):
            connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 3)
        assert [answer.error_code for answer in answers] == [1, 2, 3]
        assert server.connection_count == 1

    scenario_with(lambda header: [response(header, next(numbers))], play)


def test_the_loop_is_told_nothing_of_what_is_sent_at_once(monkeypatch):
    """What the loop is told of a socket it tells the kernel, twice."""
    told = []

    async def play(server, connection, answers) -> None:
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 1)
        loop = asyncio.get_running_loop()
        for name in ("add_writer", "remove_writer"):
            monkeypatch.setattr(loop, name, lambda *_: told.append(1))
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 2)
        assert told == []
        monkeypatch.undo()

    scenario_with(lambda header: [response(header)], play)


def test_a_request_goes_in_the_highest_version_that_both_know():
    versions = []

    def answer(header: RequestHeader) -> list[bytes]:
        versions.append(header.api_version)
        return [response(header)]

    async def play(server, connection, answers) -> None:
        server.served.max_version = 1
        for _ in range(2):
            connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 2)
        assert None not in answers

    scenario_with(answer, play)
    assert [each for each in versions if each] == [1, 1]


@pytest.mark.parametrize("served", [(ApiKey.FETCH, 4, 18), (ApiKey.VOTE, VERSION + 1, 9)])
def test_a_request_that_is_not_served_there_fails_and_the_connection_stays(served):
    async def play(server, connection, answers) -> None:
        key, lowest, highest = served
        server.served = ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for _ in range(2):
            connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: answers == [None, None])
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 3)
        assert server.connection_count == 1

    scenario_with(lambda header: [response(header)], play)


def test_what_an_older_version_has_no_words_for_is_not_sent():
    async def play(server, connection, answers) -> None:
        server.served.max_version = 1
        partition = PartitionData(pre_vote=True)
        request = VoteRequest(topics=[TopicData(topic_name="t", partitions=[partition])])
        connection.ask(request, VERSION, PATIENT_MS, answers.append)
        await until(lambda: answers == [None])

    scenario_with(lambda header: [response(header)], play)


def test_a_node_that_does_not_say_what_it_serves_is_left():
    async def play(server, connection, answers) -> None:
        server.greeting_error = 35
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: answers == [None])
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: server.connection_count == 2)

    scenario_with(lambda header: [response(header)], play)


def test_an_answer_may_come_in_pieces():
    def answer(header: RequestHeader) -> list[bytes]:
        return [bytes([byte]) for byte in response(header, 7)]

    async def play(server, connection, answers) -> None:
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 1)
        assert answers[0].error_code == 7

    scenario_with(answer, play)


@pytest.mark.parametrize(
    "answer",
    [
        lambda header: [b"\x7f\xff\xff\xff"],
        lambda header: [b"\xff\xff\xff\xff"],
        lambda header: [b"\x00\x00\x00\x08" + bytes(8)],
        lambda header: [response(header._replace(correlation_id=77))],
        lambda header: [response(header)[:4] + b"\xff" * 40],
    ],
    ids=["too large", "negative", "too short", "of another request", "not a response"],
)
def test_damage_ends_the_connection_and_is_told(answer):
    async def play(server, connection, answers) -> None:
        for _ in range(2):
            connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 2)
        assert answers == [None, None]
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: server.connection_count == 2)

    scenario_with(answer, play)


def test_silence_ends_the_connection_and_the_next_request_gets_a_new_one():
    async def play(server, connection, answers) -> None:
        connection.ask(VoteRequest(), VERSION, SILENCE_MS, answers.append)
        await until(lambda: len(answers) == 1)
        assert answers == [None]
        connection.ask(VoteRequest(), VERSION, SILENCE_MS, answers.append)
        await until(lambda: len(answers) == 2 and server.connection_count == 2)

    scenario_with(lambda header: [], play)


def test_nothing_is_told_after_close():
    async def play(server, connection, answers) -> None:
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        connection.close()
        again: list[Message | None] = []
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, again.append)
        await until(lambda: len(again) == 1)
        assert answers == []

    scenario_with(lambda header: [response(header)], play)


def test_a_refusal_is_told_and_followed_by_a_pause_that_a_sign_of_life_ends():
    async def scenario() -> None:
        refusals: list[int] = []
        (port,) = free_ports(1)
        settings = SETTINGS._replace(retry_backoff_ms=PATIENT_MS)
        connection = ClientConnection(
            asyncio.get_running_loop(), ("127.0.0.1", port), settings, lambda: refusals.append(1)
        )
        answers: list[Message | None] = []
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        assert connection._pause is None
        await until(lambda: len(answers) == 1)
        assert (answers, refusals) == ([None], [1])
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        assert connection._pause is not None
        connection.wake()
        assert connection._pause is None
        await until(lambda: len(answers) == 2)
        assert (answers, refusals) == ([None, None], [1, 1])
        connection.close()

    run(scenario)


def test_the_pause_grows_up_to_half_a_second():
    pauses = [compute_pause_ms(count, 20, since_failure_ms=0) for count in range(8)]
    assert pauses == [0, 20, 40, 80, 160, 320, 500, 500]
    assert compute_pause_ms(1_000_000, 20, since_failure_ms=0) == 500


def test_who_was_not_asked_for_longer_than_the_pause_is_tried_at_once():
    assert compute_pause_ms(8, 20, since_failure_ms=400) == 100
    assert compute_pause_ms(8, 20, since_failure_ms=60_000) == 0


def test_a_name_is_resolved():
    async def scenario() -> None:
        async with Server(lambda header: [response(header, 5)]) as server:
            loop = asyncio.get_running_loop()
            address = ("localhost", server.address[1])
            connection = ClientConnection(loop, address, SETTINGS)
            answers: list[Message | None] = []
            connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
            await until(lambda: len(answers) == 1)
            assert answers == [VoteResponse(error_code=5)]
            connection.close()

    run(scenario)


def test_a_name_that_does_not_exist_fails():
    async def scenario() -> None:
        refusals: list[int] = []
        connection = ClientConnection(
            asyncio.get_running_loop(),
            ("no-such-host.invalid", 1),
            SETTINGS,
            lambda: refusals.append(1),
        )
        answers: list[Message | None] = []
        connection.ask(VoteRequest(), VERSION, PATIENT_MS, answers.append)
        await until(lambda: len(answers) == 1)
        assert (answers, refusals) == ([None], [])
        connection.close()

    run(scenario)
