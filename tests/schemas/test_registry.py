"""What the registry knows from its topic: the fold, the records, writes that meet others."""

import asyncio
import json
from typing import Any

import pytest

from schemas.registry import changes
from schemas.registry.candidates import SchemaRequest
from schemas.registry.domain import Registry
from schemas.registry.judge import Judge
from schemas.registry.questions import Answers, Question
from schemas.registry.records import Content, Entry, Reference
from schemas.registry.refusals import RegistryError
from tests.schemas.memory_topic import Log, MemoryTopic, compacted, folded

STRING, INT = '"string"', '"int"'


def entries(registry: Registry) -> list[Entry]:
    return [
        entry
        for subject in registry.subjects(with_deleted=True)
        for entry in registry.versions(subject, with_deleted=True)
    ]


def judged(question: Question) -> Any:
    answers = Answers()
    answers.give(question, Judge().answer(question))
    return answers.ask(question)


async def register(topic: MemoryTopic, subject: str, schema: str) -> Entry:
    request = SchemaRequest(Content(schema))
    entry = await topic.write(lambda registry: changes.register(registry, subject, request, judged))
    assert isinstance(entry, Entry)
    return entry


async def allow_all(topic: MemoryTopic) -> None:
    await topic.write(
        lambda registry: changes.put_config(registry, None, {"compatibility": "NONE"})
    )


def test_records_have_confluents_shape() -> None:
    key, value = Entry("a-value", 1, 3, Content(STRING)).record()
    assert key == b'{"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}'
    assert value == (
        b'{"subject":"a-value","version":1,"id":3,"md5":"095d71cf12556b9d5e330ad575b3df5d",'
        b'"schema":"\\"string\\"","deleted":false}'
    )


def test_what_is_not_avro_or_refers_to_others_says_so_in_its_record() -> None:
    reference = Reference("other.json", "other", 2)
    content = Content("{}", "JSON", (reference,), '{"properties":{"owner":"stock"}}')
    value = json.loads(Entry("a", 1, 3, content).record().value or b"")
    assert list(value) == [
        "subject",
        "version",
        "id",
        "md5",
        "schemaType",
        "references",
        "metadata",
        "schema",
        "deleted",
    ]
    assert value["references"] == [{"name": "other.json", "subject": "other", "version": 2}]


def test_digest_tells_content_without_metadata_from_content_with_some() -> None:
    plain, described = Content(STRING), Content(STRING, metadata='{"properties":{"a":"b"}}')
    assert plain.digest() != described.digest()
    assert plain.guid != described.guid


def test_equal_schemas_share_an_id_and_new_ones_get_the_next() -> None:
    async def check() -> None:
        topic = MemoryTopic([])
        await allow_all(topic)
        assert (await register(topic, "a", STRING)).schema_id == 1
        assert (await register(topic, "a", INT)).schema_id == 2
        assert (await register(topic, "b", INT)).schema_id == 2
        again = await register(topic, "a", STRING)
        assert (again.schema_id, again.version) == (1, 1)
        assert len(topic.log) == 4

    asyncio.run(check())


def test_second_registry_and_one_after_compaction_know_the_same() -> None:
    async def check() -> None:
        log: Log = [(b'{"keytype":"NOOP","magic":0}', None)]
        first, second = MemoryTopic(log), MemoryTopic(log)
        await allow_all(first)
        await register(first, "a", STRING)
        assert (await register(second, "a", STRING)).schema_id == 1
        await register(second, "a", INT)
        await second.write(lambda known: changes.delete_subject(known, "a", is_permanent=False))
        await register(second, "a", INT)
        await first.catch_up()
        assert entries(first.registry) == entries(second.registry)
        assert entries(folded(compacted(log))) == entries(first.registry)

    asyncio.run(check())


@pytest.mark.parametrize("subject", ["a", "b"])
def test_one_that_was_deposed_while_it_wrote_loses_nothing_of_the_new_leaders(subject: str) -> None:
    async def check() -> None:
        log: Log = []
        await allow_all(MemoryTopic(log))
        first, second = MemoryTopic(log), MemoryTopic(log)
        rival = Entry("a", 1, 1, Content(INT))
        second.before_append = lambda: log.append(rival.record())
        mine = await register(second, subject, STRING)
        await first.catch_up()
        assert mine.schema_id == 2
        assert [entry.content.schema for entry in first.registry.with_id(".", 1)] == [INT]
        assert [entry.content.schema for entry in first.registry.with_id(".", 2)] == [STRING]
        assert entries(folded(compacted(log))) == entries(first.registry)

    asyncio.run(check())


def test_deposed_one_whose_write_is_refused_by_what_came_before_takes_it_back() -> None:
    async def check() -> None:
        log: Log = []
        topic = MemoryTopic(log)
        rival = Entry("a", 1, 1, Content(INT))
        topic.before_append = lambda: log.append(rival.record())
        with pytest.raises(RegistryError):
            await register(topic, "a", STRING)
        assert entries(folded(compacted(log))) == [rival]

    asyncio.run(check())


def test_subject_that_is_deleted_softly_keeps_its_versions_and_goes_on_counting() -> None:
    async def check() -> None:
        topic = MemoryTopic([])
        await register(topic, "a", STRING)
        await topic.write(lambda known: changes.delete_subject(known, "a", is_permanent=False))
        assert topic.registry.subjects() == []
        assert topic.registry.subjects(with_deleted=True) == ["a"]
        assert (await register(topic, "a", STRING)).version == 2
        # The version that stands in for the deleted one of the same id takes its place.
        versions = topic.registry.versions("a", with_deleted=True)
        assert [entry.version for entry in versions] == [2]

    asyncio.run(check())


def test_schema_is_valid_beside_another_spelling_of_itself() -> None:
    async def check() -> None:
        topic = MemoryTopic([])
        spelt = (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
            '{ "name": "R", "type": "record",'
            ' "fields": [{"type": {"type": "int"}, "name": "a", "order": "ascending"}]}',
        )
        ids = {(await register(topic, "a", each)).schema_id for each in spelt}
        assert ids == {1}

    asyncio.run(check())


def test_ids_of_contexts_are_their_own() -> None:
    async def check() -> None:
        topic = MemoryTopic([])
        await register(topic, "a", STRING)
        assert (await register(topic, ":.lab:a", INT)).schema_id == 1
        assert topic.registry.contexts() == [".", ".lab"]

    asyncio.run(check())


def test_records_of_other_kinds_and_junk_are_passed_over() -> None:
    registry = folded(
        [
            (b"junk", b"junk"),
            (b"[]", None),
            (b'{"keytype":"SCHEMA"}', b"{}"),
            (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":"x"}'),
            (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":1,"schema":"x",'),
            (b'{"keytype":"SCHEMA","subject":"a","version":"v"}', b'{"id":1,"schema":"x"}'),
            (b'{"keytype":"DELETE_SUBJECT","subject":"a"}', b'{"version":[]}'),
            (b'{"keytype":"MODE"}', b"{}"),
            (b'{"keytype":"CONTEXT"}', b"{}"),
            (b'{"keytype":"SOMETHING_NEW"}', b"{}"),
            (b"[" * 100_000, b"[" * 100_000),
        ]
    )
    assert registry.subjects(with_deleted=True) == []
    assert registry.mode(None) == "READWRITE"


def test_topic_that_confluents_registry_wrote_is_read() -> None:
    """Records as its release 7.6 leaves them, with members that this registry does not write."""
    registry = folded(
        [
            (b'{"keytype":"NOOP","magic":0}', None),
            (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
            (
                b'{"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}',
                b'{"subject":"t-value","version":1,"id":1,"schema":"\\"string\\"",'
                b'"deleted":false,"offset":7,"ts":1700000000000}',
            ),
            (
                b'{"keytype":"SCHEMA","subject":"p-value","version":1,"magic":1}',
                b'{"subject":"p-value","version":1,"id":2,"schemaType":"PROTOBUF",'
                b'"references":[{"name":"o.proto","subject":"o","version":1}],'
                b'"schema":"syntax = \\"proto3\\";","deleted":false}',
            ),
            (
                b'{"keytype":"DELETE_SUBJECT","subject":"t-value","magic":0}',
                b'{"subject":"t-value","version":1}',
            ),
            (b'{"keytype":"MODE","subject":"p-value","magic":0}', b'{"mode":"READONLY"}'),
            (
                b'{"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}',
                b'{"tenant":"default","context":".lab"}',
            ),
        ]
    )
    assert registry.config(None) == {"compatibilityLevel": "FULL"}
    assert registry.subjects() == ["p-value"]
    (entry,) = registry.versions("p-value")
    assert entry.content.references == (Reference("o.proto", "o", 1),)
    assert registry.mode_in_scope("p-value") == "READONLY"
    assert registry.contexts() == [".", ".lab"]
