"""PostgresSource's settings. `outcomes.py` has the outcome of Debezium's other settings."""

import re
from collections.abc import Mapping
from typing import Any, Final

from connect.connectors.postgresql import selection
from connect.connectors.postgresql.masks import Masks
from connect.connectors.postgresql.refusals import MODES
from millstream.connect import ConfigDef, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import (
    CompositeValidator,
    LambdaValidator,
    NonEmptyString,
    Range,
    Validator,
    ValidString,
)
from millstream.connect.errors import ConfigException

OVERRIDE: Final = "snapshot.select.statement.overrides"


def _matching(pattern: str, said: str) -> Validator:
    def check(name: str, value: object) -> None:
        if value is not None and not re.fullmatch(pattern, str(value)):
            raise ConfigException.of_value(name, value, said)

    return LambdaValidator(check, said)


def _check_placeholder(name: str, value: Any) -> None:
    try:
        octets = bytes.fromhex(value[4:]) if value.startswith("hex:") else value.encode()
    except (ValueError, AttributeError):
        raise ConfigException.of_value(name, value, "Hex digits must follow hex:") from None
    if not octets:
        raise ConfigException.of_value(name, value, "It must not be empty")


def _check_operations(name: str, value: Any) -> None:
    wrong = [one for one in value if one not in ("c", "u", "d", "t", "none")]
    if wrong or ("none" in value and len(value) > 1):
        raise ConfigException.of_value(name, value, "Give any of c, u, d and t, or only none")


def _text(config: ConfigDef, name: str, what: str, **traits: Any) -> None:
    config.define(name, Type.STRING, Importance.MEDIUM, what, **{"default": None, **traits})


def _choice(config: ConfigDef, name: str, what: str, *values: str, group: str) -> None:
    """Define a setting with a list of allowed values; the first is its default."""
    config.define(
        name,
        Type.STRING,
        Importance.MEDIUM,
        what,
        default=values[0],
        validator=ValidString(*values),
        group=group,
    )


def _database(config: ConfigDef) -> None:
    (
        config.define("database.hostname", Type.STRING, Importance.HIGH, "The host of the server.",
                      validator=NonEmptyString(), group="Database")
        .define("database.port", Type.INT, Importance.HIGH, "The port of the server.", default=5432,
                validator=Range(1, 65535), group="Database")
        .define("database.user", Type.STRING, Importance.HIGH,
                "The database user, who must have the right REPLICATION.", group="Database")
        .define("database.password", Type.PASSWORD, Importance.HIGH, "That user's password.",
                default=None, group="Database")
        .define("database.dbname", Type.STRING, Importance.HIGH, "The database.",
                group="Database")
        .define("database.sslpassword", Type.PASSWORD, Importance.MEDIUM,
                "The password of the client's private key.", default=None, group="Database")
    )  # fmt: skip
    _choice(config, "database.sslmode", "Whether the connection is encrypted, as in libpq.",
            "prefer", "disable", "allow", "require", "verify-ca", "verify-full",
            group="Database")  # fmt: skip
    _text(config, "database.sslcert", "The file of the client's certificate, PEM.",
          group="Database")  # fmt: skip
    _text(config, "database.sslkey", "The file of its private key, PEM.", group="Database")
    _text(config, "database.sslrootcert", "The file of the authorities' certificates, PEM.",
          group="Database")  # fmt: skip
    _text(config, "database.initial.statements",
          "SQL at the start of each connection: ; separates statements, ;; is one ; in them.",
          group="Database")  # fmt: skip


def _topics(config: ConfigDef) -> None:
    for kind, what in (("schema", "schema"), ("table", "schema.table"),
                       ("column", "schema.table.column")):  # fmt: skip
        for way, verb in (("include", "captured"), ("exclude", "excluded")):
            _text(config, f"{kind}.{way}.list",
                  f"Regular expressions, separated by commas, for the {kind}s that are {verb}. "
                  f"Each must match the whole {what}.", group="Topics")  # fmt: skip
    _text(config, "message.key.columns",
          "The columns of keys instead of the primary key: table:column,column;table:column. "
          "Tables are regular expressions.", group="Topics")  # fmt: skip
    (
        config.define("topic.prefix", Type.STRING, Importance.HIGH,
                      "The prefix of topics, which are called prefix.schema.table.",
                      validator=CompositeValidator(
                          NonEmptyString(),
                          _matching(r"[A-Za-z0-9._-]*", "Only letters, digits, ., _ and -"),
                      ), group="Topics")
        .define("tombstones.on.delete", Type.BOOLEAN, Importance.MEDIUM,
                "Whether a record without a value follows each delete, so that compaction removes "
                "the key.", default=True, group="Topics")
        .define("skipped.operations", Type.LIST, Importance.MEDIUM,
                "The operations without a record: c(reate), u(pdate), d(elete), t(runcate), or "
                "none.", default=["t"],
                validator=LambdaValidator(_check_operations, "c, u, d, t or none"),
                group="Topics")
        .define("skip.messages.without.change", Type.BOOLEAN, Importance.LOW,
                "Whether an update of no captured column is skipped, for tables with REPLICA "
                "IDENTITY FULL.", default=False, group="Topics")
        .define("heartbeat.interval.ms", Type.LONG, Importance.MEDIUM,
                "The interval of records that need no change of a row; 0: none.", default=0,
                validator=Range(0), group="Topics")
    )  # fmt: skip
    _text(config, "heartbeat.action.query", "An SQL statement to run with each heartbeat.",
          group="Topics")  # fmt: skip
    _text(config, "topic.delimiter", "The separator between prefix, schema and table.",
          default=".", validator=_matching(r"[A-Za-z0-9._-]+", "Only letters, digits, ., _ and -"),
          group="Topics")  # fmt: skip
    _text(config, "topic.heartbeat.prefix", "The prefix of the topic of heartbeats.",
          default="__debezium-heartbeat", group="Topics")  # fmt: skip
    _text(config, "topic.heartbeat.name", "The topic of heartbeats instead of prefix.topic.prefix.",
          group="Topics")  # fmt: skip


def _values(config: ConfigDef) -> None:
    _choice(config, "decimal.handling.mode",
            "The form of NUMERIC and MONEY: exact decimals, doubles or strings.",
            "precise", "double", "string", group="Values")  # fmt: skip
    _choice(config, "time.precision.mode", "The form of DATE, TIME and TIMESTAMP.",
            "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds",
            "nanoseconds", group="Values")  # fmt: skip
    _choice(config, "interval.handling.mode", "The form of INTERVAL.", "numeric", "string",
            group="Values")  # fmt: skip
    _choice(config, "hstore.handling.mode", "The form of HSTORE.", "json", "map",
            group="Values")  # fmt: skip
    _choice(config, "binary.handling.mode", "The form of BYTEA.",
            "bytes", "base64", "base64-url-safe", "hex", group="Values")  # fmt: skip
    _choice(config, "schema.name.adjustment.mode", "How names of schemas become valid in Avro.",
            "none", "avro", "avro_unicode", group="Values")  # fmt: skip
    _choice(config, "field.name.adjustment.mode", "How names of fields become valid in Avro.",
            "none", "avro", "avro_unicode", group="Values")  # fmt: skip
    _text(config, "unavailable.value.placeholder",
          "The placeholder for a large value that an update did not change, or hex: and digits.",
          default="__debezium_unavailable_value",
          validator=LambdaValidator(_check_placeholder, "a string, or hex: and digits"),
          group="Values")  # fmt: skip
    config.define("money.fraction.digits", Type.SHORT, Importance.LOW,
                  "The digits of MONEY after the point.", default=2, validator=Range(0, 18),
                  group="Values")  # fmt: skip
    config.define("include.unknown.datatypes", Type.BOOLEAN, Importance.LOW,
                  "Whether values of unknown types become bytes instead of strings.",
                  default=False, group="Values")  # fmt: skip


_NAME: Final = _matching("[A-Za-z0-9_]{1,63}", "Only letters, digits and _")


def _replication(config: ConfigDef) -> None:
    _text(config, "slot.name",
          "The replication slot, created if it is missing. Each connector needs its own.",
          default="debezium", validator=_NAME, group="Replication")  # fmt: skip
    _text(config, "publication.name", "The publication.", default="dbz_publication",
          validator=_NAME, group="Replication")  # fmt: skip
    _choice(config, "publication.autocreate.mode", "Who creates the publication, and for what.",
            "all_tables", "filtered", "disabled", "no_tables", group="Replication")  # fmt: skip
    _choice(config, "snapshot.mode", "When a snapshot of the tables' rows is taken.",
            "initial", "always", "initial_only", "no_data", "never", "when_needed",
            group="Replication")  # fmt: skip
    _text(config, "snapshot.include.collection.list",
          "Regular expressions for the tables in the snapshot; empty: all tables.",
          group="Replication")  # fmt: skip
    _text(config, OVERRIDE,
          f"Tables that the snapshot reads with the query in {OVERRIDE}.schema.table.",
          group="Replication")  # fmt: skip
    _choice(config, "event.processing.failure.handling.mode",
            "What to do with a change that cannot become a record. set_aside: its table has no "
            "more records, and the others go on. fail: the task fails. warn, skip: the change is "
            "skipped.", *MODES, group="Replication")  # fmt: skip
    _text(config, "replica.identity.autoset.values",
          "Tables whose replica identity is set at the start: table:FULL,table:INDEX name. Tables "
          "are regular expressions.", group="Replication")  # fmt: skip
    (
        config.define("publish.via.partition.root", Type.BOOLEAN, Importance.LOW,
                      "Whether changes of partitions have the name of their root table.",
                      default=False, group="Replication")
        .define("max.batch.size", Type.INT, Importance.MEDIUM,
                "The largest number of changes in one read.", default=2048, validator=Range(1),
                group="Replication")
        .define("poll.interval.ms", Type.LONG, Importance.MEDIUM,
                "The wait after a read without changes.", default=500, validator=Range(1),
                group="Replication")
        .define("guardrail.collections.max", Type.INT, Importance.LOW,
                "The limit of captured tables; 0: no limit.", default=0, validator=Range(0),
                group="Replication")
    )  # fmt: skip
    _choice(config, "guardrail.collections.limit.action", "What to do if there are more tables.",
            "warn", "fail", group="Replication")  # fmt: skip


def _defined() -> ConfigDef:
    config = ConfigDef()
    for define in (_database, _topics, _values, _replication):
        define(config)
    return config


CONFIG: Final = _defined()


def mistakes_in(settings: Mapping[str, str], parsed: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with settings that each by itself are right."""
    found = dict(selection.mistakes_in(parsed))
    for name, value in settings.items():
        try:
            Masks({name: value})
        except ConfigException as error:
            found[name] = str(error)
    return found
