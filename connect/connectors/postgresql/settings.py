"""PostgresSource's settings."""

import re
from typing import Final

from millrace.connect import ConfigDef, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import LambdaValidator, NonEmptyString, Range, ValidString
from millrace.connect.errors import ConfigException

VERSION: Final = "1.0"


def _check_name(name: str, value: object) -> None:
    if not re.fullmatch("[A-Za-z0-9_]{1,63}", str(value)):
        raise ConfigException.of_value(name, value, "Letters, digits and _ alone")


_NAME = LambdaValidator(_check_name, "letters, digits and _")
CONFIG: Final = (
    ConfigDef()
    .define("database.hostname", Type.STRING, Importance.HIGH, "Where the server is.",
            validator=NonEmptyString(), group="Database")
    .define("database.port", Type.INT, Importance.HIGH, "Its port.", default=5432,
            validator=Range(1, 65535), group="Database")
    .define("database.user", Type.STRING, Importance.HIGH,
            "Who to be there: somebody who may replicate.", group="Database")
    .define("database.password", Type.PASSWORD, Importance.HIGH, "That user's password.",
            default=None, group="Database")
    .define("database.dbname", Type.STRING, Importance.HIGH, "The database.", group="Database")
    .define("topic.prefix", Type.STRING, Importance.HIGH,
            "What topics begin with: prefix.schema.table.", validator=NonEmptyString(),
            group="Topics")
    .define("table.include.list", Type.LIST, Importance.HIGH,
            "The tables, as schema.table; all of the schema public when empty.", default=[],
            group="Topics")
    .define("tombstones.on.delete", Type.BOOLEAN, Importance.MEDIUM,
            "Whether a record without value follows each delete, so that compaction forgets the "
            "key.", default=True, group="Topics")
    .define("slot.name", Type.STRING, Importance.HIGH,
            "The replication slot, made when it is missing. Each connector needs its own.",
            default="debezium", validator=_NAME, group="Replication")
    .define("publication.name", Type.STRING, Importance.HIGH,
            "The publication, made for the tables when it is missing.",
            default="dbz_publication", validator=_NAME, group="Replication")
    .define("snapshot.mode", Type.STRING, Importance.MEDIUM,
            "initial: what is there comes first; no_data: only what changes from now on.",
            default="initial", validator=ValidString("initial", "no_data"), group="Replication")
    .define("max.batch.size", Type.INT, Importance.MEDIUM,
            "How many changes are asked for at once.", default=2048, validator=Range(1),
            group="Replication")
    .define("poll.interval.ms", Type.LONG, Importance.MEDIUM,
            "How long to wait when nothing has changed.", default=500, validator=Range(1),
            group="Replication")
)  # fmt: skip
