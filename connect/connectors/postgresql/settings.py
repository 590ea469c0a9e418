"""PostgresSource: the settings that do something. What becomes of the others: `outcomes.py`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from connect.connectors.postgresql import selection
from connect.connectors.postgresql.masks import Masks
from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import (
    CompositeValidator,
    LambdaValidator,
    NonEmptyString,
    Range,
    Validator,
    ValidString,
)
from millrace.connect.errors import ConfigException

VERSION: Final = "1.0"
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
        raise ConfigException.of_value(name, value, "Behind hex: come pairs of digits") from None
    if not octets:
        raise ConfigException.of_value(name, value, "It must not be empty")


def _check_operations(name: str, value: Any) -> None:
    wrong = [one for one in value if one not in ("c", "u", "d", "t", "none")]
    if wrong or ("none" in value and len(value) > 1):
        raise ConfigException.of_value(name, value, "Any of c, u, d and t, or none alone")


def _text(config: ConfigDef, name: str, what: str, **traits: Any) -> None:
    config.define(name, Type.STRING, Importance.MEDIUM, what, **{"default": None, **traits})


def _choice(config: ConfigDef, name: str, what: str, *values: str, group: str) -> None:
    """Define a setting of one of some values, the first one its default."""
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
        config.define("database.hostname", Type.STRING, Importance.HIGH, "Where the server is.",
                      validator=NonEmptyString(), group="Database")
        .define("database.port", Type.INT, Importance.HIGH, "Its port.", default=5432,
                validator=Range(1, 65535), group="Database")
        .define("database.user", Type.STRING, Importance.HIGH,
                "The user to connect as, who may replicate.", group="Database")
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
          "SQL that every connection begins with: statements with ; between, ;; is one ; inside.",
          group="Database")  # fmt: skip


def _topics(config: ConfigDef) -> None:
    for kind, what in (("schema", "schema"), ("table", "schema.table"),
                       ("column", "schema.table.column")):  # fmt: skip
        for way, verb in (("include", "captured"), ("exclude", "left out")):
            _text(config, f"{kind}.{way}.list",
                  f"Regular expressions, with commas between, of the {kind}s to be {verb}, each "
                  f"matched against all of {what}.", group="Topics")  # fmt: skip
    _text(config, "message.key.columns",
          "The columns of keys, instead of the primary key: table:column,column;table:column, "
          "tables as regular expressions.", group="Topics")  # fmt: skip
    (
        config.define("topic.prefix", Type.STRING, Importance.HIGH,
                      "What topics begin with: prefix.schema.table.",
                      validator=CompositeValidator(
                          NonEmptyString(),
                          _matching(r"[A-Za-z0-9._-]*", "Letters, digits, ., _ and - alone"),
                      ), group="Topics")
        .define("tombstones.on.delete", Type.BOOLEAN, Importance.MEDIUM,
                "Whether a record without value follows each delete, so that compaction forgets "
                "the key.", default=True, group="Topics")
        .define("skipped.operations", Type.LIST, Importance.MEDIUM,
                "The operations that give no record: c(reate), u(pdate), d(elete), t(runcate), or "
                "none.", default=["t"],
                validator=LambdaValidator(_check_operations, "c, u, d, t or none"),
                group="Topics")
        .define("skip.messages.without.change", Type.BOOLEAN, Importance.LOW,
                "Whether an update that changes no captured column gives no record, of tables with "
                "REPLICA IDENTITY FULL.", default=False, group="Topics")
        .define("heartbeat.interval.ms", Type.LONG, Importance.MEDIUM,
                "How often a record is written though nothing changes; 0: never.", default=0,
                validator=Range(0), group="Topics")
    )  # fmt: skip
    _text(config, "heartbeat.action.query", "SQL that is run with each heartbeat.",
          group="Topics")  # fmt: skip
    _text(config, "topic.delimiter", "What stands between prefix, schema and table.",
          default=".", validator=_matching(r"[A-Za-z0-9._-]+", "Letters, digits, ., _ and - alone"),
          group="Topics")  # fmt: skip
    _text(config, "topic.heartbeat.prefix", "What the topic of heartbeats begins with.",
          default="__debezium-heartbeat", group="Topics")  # fmt: skip
    _text(config, "topic.heartbeat.name", "Its whole name, instead of prefix.topic.prefix.",
          group="Topics")  # fmt: skip


def _values(config: ConfigDef) -> None:
    _choice(config, "decimal.handling.mode",
            "What NUMERIC and MONEY become: exact decimals, doubles or texts.",
            "precise", "double", "string", group="Values")  # fmt: skip
    _choice(config, "time.precision.mode", "What DATE, TIME and TIMESTAMP become.",
            "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds",
            "nanoseconds", group="Values")  # fmt: skip
    _choice(config, "interval.handling.mode", "What INTERVAL becomes.", "numeric", "string",
            group="Values")  # fmt: skip
    _choice(config, "hstore.handling.mode", "What HSTORE becomes.", "json", "map",
            group="Values")  # fmt: skip
    _choice(config, "binary.handling.mode", "What BYTEA becomes.",
            "bytes", "base64", "base64-url-safe", "hex", group="Values")  # fmt: skip
    _choice(config, "schema.name.adjustment.mode", "How schemas' names become Avro's.",
            "none", "avro", "avro_unicode", group="Values")  # fmt: skip
    _choice(config, "field.name.adjustment.mode", "How fields' names become Avro's.",
            "none", "avro", "avro_unicode", group="Values")  # fmt: skip
    _text(config, "unavailable.value.placeholder",
          "What stands for a large value that an update left alone; hex: and digits for bytes.",
          default="__debezium_unavailable_value",
          validator=LambdaValidator(_check_placeholder, "a text, or hex: and digits"),
          group="Values")  # fmt: skip
    config.define("money.fraction.digits", Type.SHORT, Importance.LOW,
                  "How many digits MONEY has after its point.", default=2, validator=Range(0, 18),
                  group="Values")  # fmt: skip
    config.define("include.unknown.datatypes", Type.BOOLEAN, Importance.LOW,
                  "Whether types that the mapping does not know are bytes instead of texts.",
                  default=False, group="Values")  # fmt: skip


_NAME: Final = _matching("[A-Za-z0-9_]{1,63}", "Letters, digits and _ alone")


def _replication(config: ConfigDef) -> None:
    _text(config, "slot.name",
          "The replication slot, made when it is missing. Each connector needs its own.",
          default="debezium", validator=_NAME, group="Replication")  # fmt: skip
    _text(config, "publication.name", "The publication.", default="dbz_publication",
          validator=_NAME, group="Replication")  # fmt: skip
    _choice(config, "publication.autocreate.mode", "Who makes the publication, and what is in it.",
            "all_tables", "filtered", "disabled", "no_tables", group="Replication")  # fmt: skip
    _choice(config, "snapshot.mode", "When a snapshot of what is there is taken.",
            "initial", "always", "initial_only", "no_data", "never", "when_needed",
            group="Replication")  # fmt: skip
    _text(config, "snapshot.include.collection.list",
          "Regular expressions of the tables that are in the snapshot; all when empty.",
          group="Replication")  # fmt: skip
    _text(config, OVERRIDE,
          f"Tables whose rows the snapshot takes from a query, which {OVERRIDE}.schema.table has.",
          group="Replication")  # fmt: skip
    _choice(config, "event.processing.failure.handling.mode",
            "What becomes of a change that cannot be told: the task fails, or it is left out.",
            "fail", "warn", "skip", group="Replication")  # fmt: skip
    _text(config, "replica.identity.autoset.values",
          "Tables whose replica identity is set at the start: table:FULL,table:INDEX name, tables "
          "as regular expressions.", group="Replication")  # fmt: skip
    (
        config.define("publish.via.partition.root", Type.BOOLEAN, Importance.LOW,
                      "Whether changes of partitions come under the name of their root.",
                      default=False, group="Replication")
        .define("max.batch.size", Type.INT, Importance.MEDIUM,
                "How many changes are asked for at once.", default=2048, validator=Range(1),
                group="Replication")
        .define("poll.interval.ms", Type.LONG, Importance.MEDIUM,
                "How long to wait when nothing has changed.", default=500, validator=Range(1),
                group="Replication")
        .define("guardrail.collections.max", Type.INT, Importance.LOW,
                "How many tables may be captured; 0: any number.", default=0, validator=Range(0),
                group="Replication")
    )  # fmt: skip
    _choice(config, "guardrail.collections.limit.action", "What becomes of more tables.",
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
