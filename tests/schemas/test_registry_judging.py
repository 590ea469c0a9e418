"""Processes that check schemas: a slow one is given up, and nobody else waits for it."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from schemas.registry.judge import Judge
from schemas.registry.judging.pool import Judges, Limits, Places
from schemas.registry.questions import Compare, Find, Parse, Parsed, Refused, Write
from schemas.registry.refusals import RegistryError

STRING = Parse("AVRO", '{"type": "string"}')
PATTERN = '{"patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}'


def nested_choices(depth: int) -> str:
    """Make a JSON Schema whose parts are compared with each other at every level."""
    schema: Any = {"type": "string"}
    for level in range(depth):
        schema = {"anyOf": [{"properties": {str(each): schema}} for each in range(level + 2)]}
    return json.dumps(schema)


def endless() -> Compare:
    """Ask something that takes minutes of processor time."""
    names = ",".join(f'"{number}":{{"type":"string"}}' for number in range(3000))
    choices = ",".join(f'{{"properties":{{"{number}":true,{names}}}}}' for number in range(60))
    schema = f'{{"anyOf":[{choices}]}}'
    return Compare("FULL", "STRICT", Parse("JSON", schema), ((1, Parse("JSON", f"{schema} ")),))


def judging(check: Callable[[Judges], Awaitable[None]], limits: Limits | None = None) -> None:
    async def run() -> None:
        judges = Judges(limits)
        try:
            await check(judges)
        finally:
            await judges.close()

    asyncio.run(run())


def test_questions_are_answered_by_another_process() -> None:
    async def check(judges: Judges) -> None:
        assert await judges.answer(STRING, "a") == Parsed('"string"', '"string"')
        refused = await judges.answer(Parse("AVRO", "\ud800"), "a")
        assert isinstance(refused, Refused)
        assert refused.error_code == 42201
        proto = Parse("PROTOBUF", 'syntax = "proto3"; message A { int32 a = 1; }')
        assert isinstance(await judges.answer(Write(proto, "serialized"), "a"), str)
        spaced = Parse("PROTOBUF", proto.text.replace(" ", "  "))
        assert await judges.answer(Find(proto, ((1, STRING), (7, spaced))), "a") == [7]
        assert await judges.answer(Find(proto, ((1, STRING),)), "a") == []
        old = Parse("JSON", '{"type":"string"}')
        messages = await judges.answer(
            Compare("BACKWARD", "STRICT", Parse("JSON", '{"type":"null"}'), ((4, old),)), "a"
        )
        assert isinstance(messages, list)
        assert "TYPE_CHANGED" in messages[0]
        assert "{oldSchemaVersion: 4}" in messages

    judging(check)


def test_version_that_is_not_valid_here_is_named_when_it_is_compared_with() -> None:
    old = Parse("JSON", '{"$ref":"http://example.test/other.json"}')
    answer = Judge().answer(Compare("FULL", "STRICT", Parse("JSON", "{}"), ((3, old),)))
    assert isinstance(answer, Refused)
    assert "Cannot compare with version 3, which is not valid here: " in answer.message
    assert "unresolved $ref 'http://example.test/other.json'" in answer.message


def test_chain_of_many_schemas_is_written_out_on_a_stack_that_is_large_enough() -> None:
    named = [("R0", '{"type":"record","name":"R0","fields":[]}')]
    for number in range(1, 350):
        field = f'{{"name":"f","type":"R{number - 1}"}}'
        text = f'{{"type":"record","name":"R{number}","fields":[{field}]}}'
        named.append((f"R{number}", text))
    last = Parse("AVRO", named.pop()[1], tuple(named))

    async def check(judges: Judges) -> None:
        text = await judges.answer(Write(last, "resolved"), "a")
        assert isinstance(text, str)
        assert text.count('"type":"record"') == 350

    judging(check)


def test_slow_question_is_given_up_and_others_are_answered_meanwhile() -> None:
    async def check(judges: Judges) -> None:
        await judges.answer(STRING, "friend")
        slow = asyncio.ensure_future(judges.answer(endless(), "stranger"))
        waits: list[float] = []
        while not slow.done():
            started = time.monotonic()
            number = len(waits)
            schema = Parse("AVRO", f'{{"type":"fixed","name":"F{number}","size":1}}')
            assert isinstance(await judges.answer(schema, "friend"), Parsed)
            waits.append(time.monotonic() - started)
        refused = await slow
        assert isinstance(refused, Refused)
        assert "takes longer than 1 s to check" in refused.message
        assert len(waits) > 3
        assert isinstance(await judges.answer(STRING, "stranger"), Parsed)

    judging(check, Limits(answer_seconds=1.0))


def test_process_ends_when_it_is_idle_and_another_takes_its_place() -> None:
    async def check(judges: Judges) -> None:
        await judges.answer(STRING, "a")
        (process,) = judges._idle
        assert await asyncio.wait_for(process.wait(), 10) != 0
        assert judges._idle == []
        assert isinstance(await judges.answer(Parse("AVRO", '"int"'), "a"), Parsed)

    judging(check, Limits(idle_seconds=0.05))


def test_process_that_was_killed_is_replaced() -> None:
    async def check(judges: Judges) -> None:
        await judges.answer(STRING, "a")
        os.kill(judges._idle[0]._process.pid, 9)
        await judges._idle[0].wait()
        assert isinstance(await judges.answer(Parse("AVRO", '"int"'), "a"), Parsed)

    judging(check)


def test_question_that_processes_die_of_is_refused_after_the_second() -> None:
    class Dying(Judges):
        async def _judge(self, data: bytes) -> bytes | str:
            return await super()._judge(data[:5])  # No process can read it.

    async def check() -> None:
        judges = Dying()
        refused = await judges.answer(STRING, "a")
        assert isinstance(refused, Refused)
        assert "dies of it" in refused.message
        assert judges.memory.size_bytes == 0
        await judges.close()

    asyncio.run(check())


def test_client_is_sent_away_when_the_machine_is_too_busy() -> None:
    async def check(judges: Judges) -> None:
        with pytest.raises(RegistryError) as told:
            await judges.answer(STRING, "a")
        assert told.value.http_status == 429

    judging(check, Limits(wait_seconds=0.0))


def test_client_has_one_place_and_a_few_that_wait() -> None:
    async def check() -> None:
        places = Places(2, waiting=3, client_waiting=2, seconds=0.05)
        async with places.place("a"):
            with pytest.raises(RegistryError, match="429"):
                async with places.place("a"):
                    raise AssertionError("one place at a time")
            async with places.place("b"):
                with pytest.raises(RegistryError, match="429"):
                    async with places.place("c"):
                        raise AssertionError("two places in all")
        async with places.place("a"):
            pass
        assert places._clients == {}

    asyncio.run(check())


def test_those_that_wait_beyond_the_limit_are_sent_away_at_once() -> None:
    async def check() -> None:
        places = Places(1, waiting=2, client_waiting=2, seconds=60)
        async with places.place("a"):
            waiting = asyncio.ensure_future(places.place("a").__aenter__())
            await asyncio.sleep(0)
            for client in ("a", "b"):
                with pytest.raises(RegistryError) as told:
                    async with places.place(client):
                        raise AssertionError("too many wait")
                assert told.value.http_status == 429
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert places._clients == {}

    asyncio.run(check())


@pytest.mark.parametrize(
    "question",
    [
        Parse("AVRO", '[{"type":"record","name":"R","fields":[]},' + '"int"' + "]"),
        Parse("JSON", PATTERN),
        Parse("JSON", nested_choices(3)),
    ],
)
def test_ordinary_questions_are_quick(question: Parse) -> None:
    async def check(judges: Judges) -> None:
        assert isinstance(await judges.answer(question, "a"), Parsed)

    judging(check)
