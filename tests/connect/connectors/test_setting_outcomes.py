"""Every setting that the original of a connector documents has an outcome, and a page tells it.

`original_settings/` has the names of the originals' settings, one a line, from their public
documentation. What a setting does as in the original has `= FILE::TEST` behind its name, the test
that shows it, and perhaps a sentence. Every other setting has a row in the connector's table. After
a change: `REWRITE=1 pytest tests/connect/connectors/test_setting_outcomes.py`.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from connect.connectors.elasticsearch.sink import OUTCOMES as ELASTICSEARCH
from connect.connectors.jdbc.outcomes import SINK, SOURCE
from connect.connectors.object_store.sink import OUTCOMES as OBJECT_STORE
from connect.connectors.postgresql.outcomes import OUTCOMES as POSTGRESQL
from connect.converters.json_converter import JsonConverter
from connect.converters.primitives import StringConverter
from connect.outcomes import Outcomes, Setting, refused, warned
from connect.registry_converters.avro import AvroConverter
from connect.registry_converters.json_schema import JsonSchemaConverter
from connect.registry_converters.protobuf import ProtobufConverter
from millstream.connect import ConfigDef, ConfigException
from millstream.connect.config.types import Importance, Type

ORIGINALS: Final = Path(__file__).parent / "original_settings"
ROOT: Final = Path(__file__).parents[3]
KAFKAS: Final = ConfigDef(JsonConverter.config())
for key in StringConverter.config().keys.values():
    if key.name not in KAFKAS.keys:
        KAFKAS.add(key)
REGISTRY_PAGE: Final = "connect/registry_converters/SETTINGS.md"
TABLES: Final[dict[str, tuple[Outcomes, str]]] = {
    "confluent-jdbc-source.txt": (SOURCE, "connect/connectors/jdbc/SOURCE-SETTINGS.md"),
    "confluent-jdbc-sink.txt": (SINK, "connect/connectors/jdbc/SINK-SETTINGS.md"),
    "debezium-postgresql.txt": (POSTGRESQL, "connect/connectors/postgresql/SETTINGS.md"),
    "confluent-avro-converter.txt": (
        AvroConverter.outcomes,
        REGISTRY_PAGE,
    ),
    "confluent-json-schema-converter.txt": (
        JsonSchemaConverter.outcomes,
        REGISTRY_PAGE,
    ),
    "confluent-protobuf-converter.txt": (
        ProtobufConverter.outcomes,
        REGISTRY_PAGE,
    ),
    "confluent-elasticsearch.txt": (ELASTICSEARCH, "connect/connectors/elasticsearch/SETTINGS.md"),
    "confluent-s3.txt": (OBJECT_STORE, "connect/connectors/object_store/SETTINGS.md"),
    "kafka-converters.txt": (
        Outcomes("Kafka's JsonConverter and StringConverter", KAFKAS),
        "connect/converters/SETTINGS.md",
    ),
}
"""Of each file in `original_settings/`: the connector's table, and where its page is."""

SAMPLE: Final = Outcomes(
    "a connector",
    ConfigDef().define("mode", Type.STRING, Importance.LOW, "How it works.", default=""),
    refused("signals", "there are no signals.", "", "none"),
    refused("mo*", "it is none of ours."),
    warned("it only sizes a queue.", "queue.size"),
    families=("mask.*.chars",),
)


class Shown(NamedTuple):
    """A setting that does what it does in the original."""

    name: str
    test: str
    sentence: str


def names_in(file: str) -> list[str]:
    return [name for name, _ in _lines(file)]


def shown_in(file: str) -> list[Shown]:
    found = [(name, *told.strip().partition(" ")) for name, told in _lines(file) if told]
    return [Shown(name, test, sentence) for name, test, _, sentence in found]


def _lines(file: str) -> list[tuple[str, str]]:
    lines = (line.strip() for line in (ORIGINALS / file).read_text(encoding="utf-8").splitlines())
    told = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return [(name.strip(), rest) for name, _, rest in told]


def page(*tables: tuple[Outcomes, list[Shown]]) -> str:
    """Return the outcomes of all settings as a page; settings with the same outcome share a row.

    With several tables a row says to which of them it belongs.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for table, shown in tables:
        rows = [(row.name, _outcome(row), row.sentence) for row in table.rows]
        rows += [(each.name, "does the same", each.sentence) for each in shown]
        for row in rows:
            found.setdefault(row, []).append(table.original.split()[-1])
    together: dict[tuple[str, ...], list[str]] = {}
    for (name, *rest), of in sorted(found.items()):
        whose = "all" if len(of) == len(tables) else ", ".join(of)
        cells = (*rest, *([whose] if len(tables) > 1 else []))
        together.setdefault(cells, []).append(f"`{name}`")
    head = ["settings", "outcome", "what that means", *(["of"] if len(tables) > 1 else [])]
    lines = [
        f"# Settings of {', '.join(table.original for table, _ in tables)}",
        "",
        "This page is written from the table in the code, by",
        "`REWRITE=1 pytest tests/connect/connectors/test_setting_outcomes.py`.",
        "A `*` in a name is a part that you choose.",
        "",
        _line(head),
        "|" + "---|" * len(head),
        *(_line([", ".join(names), *cells]) for cells, names in together.items()),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _outcome(row: Setting) -> str:
    values = (f"`{value}`" if value else "empty" for value in row.unless)
    return row.outcome.value + (f", unless {' or '.join(values)}" if row.unless else "")


def test_each_outcome() -> None:
    given = {"mode": "x", "signals": "kafka", "queue.size": "3", "mask.5.chars": "a", "own": "1"}
    assert SAMPLE.refusals(given) == {"signals": "signals is not supported: there are no signals."}
    assert SAMPLE.warnings(given) == ["queue.size has no effect: it only sizes a queue."]
    assert [name for name in given if SAMPLE.does(name)] == ["mode", "mask.5.chars"]
    assert SAMPLE.refusals({"mood": "x"})
    more = {**given, "name": "x", "transforms.a.type": "b", "topics": "c", "tasks.max": "1"}
    assert SAMPLE.unknown(more) == ["own has no effect: nobody knows it."]
    assert not SAMPLE.refusals({"signals": " None "})
    values = SAMPLE.refuse(given, {})
    assert list(values) == ["signals"]
    assert values["signals"].error_messages
    with pytest.raises(ConfigException, match="no signals"):
        SAMPLE.require(given)
    assert "| `signals` | refused, unless empty or `none` | there are" in page((SAMPLE, []))


def test_every_list_of_settings_has_a_table() -> None:
    assert {file.name for file in ORIGINALS.glob("*.txt")} == set(TABLES)


@pytest.mark.parametrize("file", TABLES)
def test_no_setting_of_the_original_is_ignored(file: str) -> None:
    table, _ = TABLES[file]
    shown = {each.name for each in shown_in(file)}
    assert len(names_in(file)) > 5
    # What does the same is known to the connector, and everything else has a row.
    assert [name for name in shown if table.of(name) is not None or not table.does(name)] == []
    rest = [name for name in names_in(file) if name not in shown]
    assert [name for name in rest if table.of(name) is None] == []


@pytest.mark.parametrize("file", TABLES)
def test_each_setting_has_a_test_that_is_there_or_a_reason(file: str) -> None:
    table, _ = TABLES[file]
    assert len({row.name for row in table.rows}) == len(table.rows)
    assert all(row.sentence for row in table.rows)
    for shown in shown_in(file):
        module, _, name = shown.test.partition("::")
        [path] = (ROOT / "tests" / "connect").rglob(module)
        assert f"def {name}(" in path.read_text(encoding="utf-8"), shown


@pytest.mark.parametrize("where", sorted({where for _, where in TABLES.values()}))
def test_the_page_is_what_the_tables_say(where: str) -> None:
    files = [file for file, (_, its) in TABLES.items() if its == where]
    written = page(*((TABLES[file][0], shown_in(file)) for file in files))
    if os.environ.get("REWRITE"):
        (ROOT / where).write_text(written, encoding="utf-8")
    assert (ROOT / where).read_text(encoding="utf-8") == written
