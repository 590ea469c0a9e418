"""ConfigDef: what is read, what is refused, and in which words."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from millstream.connect.config.config_def import ConfigDef, ConfigKey
from millstream.connect.config.infos import config_infos
from millstream.connect.config.types import (
    Importance,
    Password,
    Type,
    Width,
    convert_to_string,
    parse_type,
)
from millstream.connect.config.validators import (
    CaseInsensitiveValidString,
    CompositeValidator,
    ListSize,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Range,
    Validator,
    ValidList,
    ValidString,
)
from millstream.connect.errors import ConfigException

HIGH, LOW = Importance.HIGH, Importance.LOW

READ: list[tuple[Type, object, object]] = [
    (Type.BOOLEAN, " TRUE ", True),
    (Type.BOOLEAN, False, False),
    (Type.STRING, " a b\t", "a b"),
    (Type.STRING, None, None),
    (Type.INT, "+7", 7),
    (Type.INT, "-2147483648", -(2**31)),
    (Type.SHORT, "32767", 32767),
    (Type.LONG, str(2**63 - 1), 2**63 - 1),
    (Type.DOUBLE, "1e3", 1000.0),
    (Type.DOUBLE, ".5f", 0.5),
    (Type.DOUBLE, 1, 1.0),
    (Type.LIST, "", []),
    (Type.LIST, "a , b,,c ", ["a", "b", "", "c"]),
    (Type.PASSWORD, " secret ", Password("secret")),
    (Type.CLASS, "collections.OrderedDict", __import__("collections").OrderedDict),
]
REFUSED: list[tuple[Type, object, str]] = [
    (Type.BOOLEAN, "yes", "Expected value to be either true or false"),
    (Type.INT, "2147483648", "Not a number of type INT"),
    (Type.INT, "1_000", "Not a number of type INT"),
    (Type.INT, "", "Not a number of type INT"),
    (Type.INT, "9" * 100_000, "Not a number of type INT"),
    (Type.INT, 1.5, "Expected value to be a 32-bit integer, but it was a float"),
    (Type.SHORT, "32768", "Not a number of type SHORT"),
    (Type.LONG, "1L", "Not a number of type LONG"),
    (Type.DOUBLE, "1_0.0", "Not a number of type DOUBLE"),
    (Type.DOUBLE, "inf", "Not a number of type DOUBLE"),
    (Type.LIST, 7, "Expected a comma separated list."),
    (Type.STRING, 7, "Expected value to be a string, but it was a int"),
    (Type.CLASS, "no.such.Class", "Class no.such.Class could not be found."),
    (Type.CLASS, "..", "Class .. could not be found."),
    (Type.CLASS, "os.path", "Class os.path could not be found."),
]
WRONG: list[tuple[Validator, object, str]] = [
    (Range(1), 0, "Invalid value 0 for configuration x: Value must be at least 1"),
    (Range(1, 3), 4, "Invalid value 4 for configuration x: Value must be no more than 3"),
    (Range(), None, "Invalid value null for configuration x: Value must be non-null"),
    (
        ValidString("a", "b"),
        "c",
        "Invalid value c for configuration x: String must be one of: a, b",
    ),
    (
        CaseInsensitiveValidString("a"),
        None,
        "Invalid value null for configuration x: String must be one of (case insensitive): A",
    ),
    (ValidList(), ["a", "a"], "Configuration 'x' values must not be duplicated."),
    (ValidList(), None, "Configuration 'x' values must not be null."),
    (ValidList(), [""], "Configuration 'x' values must not be empty."),
    (
        ValidList(is_empty_allowed=False),
        [],
        "Configuration 'x' must not be empty. Valid values include: any non-empty value",
    ),
    (
        ValidList("a"),
        ["b"],
        "Invalid value b for configuration x: String must be one of: a",
    ),
    (
        ListSize(1),
        ["a", "b"],
        "Invalid value [a, b] for configuration x: exceeds maximum list size of [1].",
    ),
    (NonNullValidator(), None, "Invalid value null for configuration x: entry must be non null"),
    (NonEmptyString(), "", "Invalid value  for configuration x: String must be non-empty"),
    (
        NonEmptyStringWithoutControlChars(),
        "a\0\n",
        "Invalid value a\0\n for configuration x: String may not contain control sequences "
        "but had the following ASCII chars: 0, 10",
    ),
]


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_a_setting_is_read_as_its_type(kind: Type, text: object, value: object) -> None:
    assert parse_type("x", text, kind) == value


@pytest.mark.parametrize(("kind", "text", "why"), REFUSED, ids=lambda one: str(one)[:30])
def test_what_is_not_of_the_type_is_refused(kind: Type, text: object, why: str) -> None:
    with pytest.raises(ConfigException) as refused:
        parse_type("x", text, kind)

    assert str(refused.value) == f"Invalid value {text} for configuration x: {why}"


@pytest.mark.parametrize(("validator", "value", "why"), WRONG, ids=lambda one: str(one)[:30])
def test_a_validator_says_what_is_wrong(validator: Validator, value: object, why: str) -> None:
    with pytest.raises(ConfigException) as refused:
        CompositeValidator(validator)("x", value)

    assert str(refused.value) == why


def test_a_definition_gives_every_setting_a_value() -> None:
    definition = (
        ConfigDef()
        .define("topic", Type.STRING, HIGH, "Where to.")
        .define("size", Type.INT, LOW, "How many.", default="5", validator=Range(1))
        .define("key", Type.PASSWORD, LOW, "A secret.", default=None)
    )

    assert definition.parse({"topic": "t", "other": "1"}) == {
        "topic": "t",
        "size": 5,
        "key": None,
    }
    with pytest.raises(ConfigException, match='configuration "topic" which has no default'):
        definition.parse({})
    with pytest.raises(ConfigException, match="at least 1"):
        definition.parse({"topic": "t", "size": "0"})


def test_a_default_has_to_be_valid_and_a_name_is_defined_once() -> None:
    with pytest.raises(ConfigException, match="at least 1"):
        ConfigKey("size", Type.INT, LOW, "", default=0, validator=Range(1))
    with pytest.raises(ConfigException, match="a is defined twice"):
        ConfigDef().define("a", Type.INT, LOW, "").define("a", Type.INT, LOW, "")


def test_duplicates_are_taken_out_of_a_list_that_may_not_have_them() -> None:
    definition = ConfigDef().define("fields", Type.LIST, HIGH, "", validator=ValidList())

    assert definition.parse({"fields": "b,a,b"}) == {"fields": ["b", "a"]}


@dataclass
class Tables:
    """Recommends tables when there is a database to look into."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        if parsed["database"] == "broken":
            raise ConfigException(f"no tables for {name}")
        return ["orders", "stock"]

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return parsed["mode"] == "table"


def database_settings() -> ConfigDef:
    return (
        ConfigDef()
        .define("database", Type.STRING, HIGH, "", dependents=["table"], group="Where")
        .define("mode", Type.STRING, HIGH, "", default="table", validator=ValidString("table"))
        .define("table", Type.STRING, HIGH, "", default=None, recommender=Tables())
    )


def test_a_validation_finds_every_mistake() -> None:
    values = database_settings().validate_all({"mode": "query"})

    assert values["database"].error_messages == [
        'Missing required configuration "database" which has no default value.'
    ]
    assert values["mode"].error_messages == [
        "Invalid value query for configuration mode: String must be one of: table"
    ]
    assert (values["table"].recommended_values, values["table"].visible) == (
        ["orders", "stock"],
        False,
    )


def test_a_value_that_cannot_be_read_goes_through_the_validator_as_null() -> None:
    values = ConfigDef().define("n", Type.INT, LOW, "", validator=Range(0)).validate_all({"n": "x"})

    assert values["n"].error_messages == [
        "Invalid value x for configuration n: Not a number of type INT",
        "Invalid value null for configuration n: Value must be non-null",
    ]


def test_a_recommender_that_fails_is_a_mistake_of_its_setting() -> None:
    values = database_settings().validate_all({"database": "broken"})

    assert values["table"].error_messages == ["no tables for table"]


def test_dependents_that_are_not_defined_or_go_round_in_a_circle_are_survived() -> None:
    definition = (
        ConfigDef()
        .define("a", Type.INT, LOW, "", default=1, dependents=["b", "nowhere"])
        .define("b", Type.INT, LOW, "", default=1, dependents=["b"])
    )

    values = definition.validate_all({})

    assert values["nowhere"].error_messages == [
        "nowhere is referred in the dependents, but not defined."
    ]
    assert not values["nowhere"].visible
    with pytest.raises(ConfigException, match="not defined: nowhere"):
        definition.parse({})


def test_an_embedded_definition_keeps_what_it_means_behind_a_prefix() -> None:
    outer = ConfigDef()

    outer.embed("source.", "Source", 3, database_settings())

    key = outer.keys["source.table"]
    values = outer.validate_all({"source.database": "shop", "source.mode": "x"})
    assert outer.groups == ["Source", "Source: Where"]
    assert (key.group, outer.keys["source.database"].dependents) == ("Source", ["source.table"])
    assert values["source.table"].recommended_values == ["orders", "stock"]
    assert values["source.mode"].error_messages == [
        "Invalid value x for configuration mode: String must be one of: table"
    ]


def test_settings_are_listed_by_group_order_need_and_importance() -> None:
    definition = (
        ConfigDef()
        .define("late", Type.INT, LOW, "", default=1, group="B", order_in_group=2)
        .define("early", Type.INT, LOW, "", default=1, group="B", order_in_group=1)
        .define("low", Type.INT, LOW, "", default=1)
        .define("high", Type.INT, HIGH, "", default=1)
        .define("needed", Type.INT, LOW, "")
    )

    assert [key.name for key in definition.sorted_keys()] == [
        "needed",
        "high",
        "low",
        "early",
        "late",
    ]


def test_a_validation_is_shown_as_kafka_connects_rest_shows_it() -> None:
    definition = ConfigDef().define(
        "poll.ms",
        Type.LONG,
        Importance.MEDIUM,
        "How often.",
        default=1000,
        group="Time",
        order_in_group=1,
        width=Width.SHORT,
        display_name="Poll",
    )
    values = definition.validate_all({"poll.ms": "soon"})

    body = config_infos("Clock", definition.keys, values.values(), definition.groups)

    assert json.loads(json.dumps(body)) == {
        "name": "Clock",
        "error_count": 1,
        "groups": ["Time"],
        "configs": [
            {
                "definition": {
                    "name": "poll.ms",
                    "type": "LONG",
                    "required": False,
                    "default_value": "1000",
                    "importance": "MEDIUM",
                    "documentation": "How often.",
                    "group": "Time",
                    "order_in_group": 1,
                    "width": "SHORT",
                    "display_name": "Poll",
                    "dependents": [],
                },
                "value": {
                    "name": "poll.ms",
                    "value": None,
                    "recommended_values": [],
                    "errors": [
                        "Invalid value soon for configuration poll.ms: Not a number of type LONG"
                    ],
                    "visible": True,
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, Type.INT, None),
        (True, Type.BOOLEAN, "true"),
        (0.0001, Type.DOUBLE, "1.0E-4"),
        (["a", "b"], Type.LIST, "a,b"),
        (Password("secret"), Type.PASSWORD, "[hidden]"),
        (ConfigDef, Type.CLASS, "millstream.connect.config.config_def.ConfigDef"),
    ],
)
def test_a_value_is_written_back(value: object, kind: Type, text: str | None) -> None:
    assert convert_to_string(value, kind) == text


def test_a_password_is_never_written_by_accident() -> None:
    assert "secret" not in f"{Password('secret')} {Password('secret')!r} {[Password('secret')]}"
