"""Every setting that the original of a connector documents has an outcome, and a page tells it.

`original_settings/` has the names of the originals' settings, one a line, from their public
documentation. After a change of a table: `REWRITE=1 pytest
tests/connect/connectors/test_setting_outcomes.py`.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from connect.connectors.elasticsearch.outcomes import OUTCOMES as ELASTICSEARCH
from connect.connectors.jdbc.outcomes import SINK, SOURCE
from connect.connectors.object_store.outcomes import OUTCOMES as OBJECT_STORE
from connect.connectors.postgresql.outcomes import TABLE as POSTGRESQL
from connect.converters.outcomes import OUTCOMES as KAFKA_CONVERTERS
from connect.outcomes import Outcome, Outcomes, refused, same, warned
from connect.registry_converters.outcomes import AVRO, JSON_SCHEMA, PROTOBUF
from millstream.connect import ConfigDef, ConfigException

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
TABLES: Final[dict[str, tuple[Outcomes, str]]] = {
    "confluent-jdbc-source.txt": (SOURCE, "connect/connectors/jdbc/SOURCE-SETTINGS.md"),
    "confluent-jdbc-sink.txt": (SINK, "connect/connectors/jdbc/SINK-SETTINGS.md"),
    "debezium-postgresql.txt": (POSTGRESQL, "connect/connectors/postgresql/SETTINGS.md"),
    "confluent-avro-converter.txt": (AVRO, "connect/registry_converters/AVRO_SETTINGS.md"),
    "confluent-json-schema-converter.txt": (
        JSON_SCHEMA,
        "connect/registry_converters/JSON_SCHEMA_SETTINGS.md",
    ),
    "confluent-protobuf-converter.txt": (
        PROTOBUF,
        "connect/registry_converters/PROTOBUF_SETTINGS.md",
    ),
    "confluent-elasticsearch.txt": (ELASTICSEARCH, "connect/connectors/elasticsearch/SETTINGS.md"),
    "confluent-s3.txt": (OBJECT_STORE, "connect/connectors/object_store/SETTINGS.md"),
    "kafka-converters.txt": (KAFKA_CONVERTERS, "connect/converters/SETTINGS.md"),
}
"""Of each file in `original_settings/`: the connector's table, and where its page is."""

SAMPLE: Final = Outcomes(
    "a connector",
    same("test_setting_outcomes.py::test_each_outcome", "mode", "mask.*.chars"),
    refused("signals", "there are no signals.", "", "none"),
    warned("it only sizes a queue.", "queue.size"),
)


def names_in(file: Path) -> list[str]:
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def test_each_outcome() -> None:
    given = {"mode": "x", "signals": "kafka", "queue.size": "3", "mask.5.chars": "a", "own": "1"}
    assert SAMPLE.refusals(given) == {"signals": "signals is not supported: there are no signals."}
    assert SAMPLE.warnings(given) == ["queue.size has no effect: it only sizes a queue."]
    assert [name for name in given if SAMPLE.of(name) is None] == ["own"]
    more = {**given, "name": "x", "transforms.a.type": "b", "topics": "c", "tasks.max": "1"}
    assert SAMPLE.unknown(more, ConfigDef()) == ["own has no effect: nobody knows it."]
    assert not SAMPLE.refusals({"signals": " None "})
    values = SAMPLE.refuse(given, {})
    assert list(values) == ["signals"]
    assert values["signals"].error_messages
    with pytest.raises(ConfigException, match="no signals"):
        SAMPLE.require(given)
    assert "| `signals` | refused, unless empty or `none` | there are" in SAMPLE.page()


def test_every_list_of_settings_has_a_table() -> None:
    files = {file.name for file in (HERE / "original_settings").glob("*.txt")}
    assert files == set(TABLES)


@pytest.mark.parametrize("file", TABLES)
def test_no_setting_of_the_original_is_ignored(file: str) -> None:
    table, _ = TABLES[file]
    names = names_in(HERE / "original_settings" / file)
    assert len(names) > 5
    assert [name for name in names if table.of(name) is None] == []


@pytest.mark.parametrize("file", TABLES)
def test_each_row_names_a_test_that_is_there_or_a_reason(file: str) -> None:
    table, _ = TABLES[file]
    assert len({row.name for row in table.rows}) == len(table.rows)
    for row in table.rows:
        if row.outcome is not Outcome.SAME:
            assert row.sentence, row
            continue
        module, _, name = row.test.partition("::")
        [file_of_test] = (ROOT / "tests" / "connect").rglob(module)
        assert f"def {name}(" in file_of_test.read_text(encoding="utf-8"), row


@pytest.mark.parametrize("file", TABLES)
def test_the_page_is_what_the_table_says(file: str) -> None:
    table, where = TABLES[file]
    page = ROOT / where
    if os.environ.get("REWRITE"):
        page.write_text(table.page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == table.page()
