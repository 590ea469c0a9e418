"""ReplaceField drops fields and renames them."""

from collections.abc import Mapping
from typing import Any

from connect.transforms.parts import (
    PACKAGE,
    REPLACE_NULL,
    OfKey,
    OfValue,
    PartTransformation,
    bare_struct,
    cached,
    field_value,
    required_map,
    required_struct,
    with_null_setting,
)
from millstream.connect import ConfigDef, ConfigException, Importance, Schema, Struct
from millstream.connect.config.types import Type
from millstream.connect.config.validators import LambdaValidator, ValidList
from millstream.connect.data.records import ConnectRecord
from millstream.connect.data.schema import SchemaAndValue
from millstream.connect.errors import SchemaBuilderException, text_of

_PURPOSE = "field replacement"


def renames_of(mappings: list[str]) -> dict[str, str]:
    """Return the new name of each field by its old name; raise ConfigException."""
    renames: dict[str, str] = {}
    for mapping in mappings:
        # Java's split drops empty strings at the end.
        parts = mapping.rstrip(":").split(":")
        if len(parts) != 2:
            raise ConfigException.of_value(
                "renames", text_of(mappings), f"Invalid rename mapping: {mapping}"
            )
        renames[parts[0]] = parts[1]
    return renames


def _check_renames(name: str, value: Any) -> None:
    renames_of(value)


_CONFIG = with_null_setting(
    ConfigDef()
    .define(
        "exclude",
        Type.LIST,
        Importance.MEDIUM,
        "The fields to drop, even if include names them.",
        default=[],
        validator=ValidList(),
    )
    .define(
        "include",
        Type.LIST,
        Importance.MEDIUM,
        "The fields to keep; empty keeps all.",
        default=[],
        validator=ValidList(),
    )
    .define(
        "renames",
        Type.LIST,
        Importance.MEDIUM,
        "New names for fields, each as old:new.",
        default=[],
        validator=LambdaValidator(
            _check_renames,
            "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>",
        ),
    )
)


class ReplaceField(PartTransformation):
    """Drops and renames fields."""

    definition = _CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _CONFIG.parse(configs)
        self._exclude = frozenset(settings["exclude"])
        self._include = frozenset(settings["include"])
        self._renames = renames_of(settings["renames"])
        self._with_default: bool = settings[REPLACE_NULL]
        self._replaced_schema = cached(self._schema_of)

    def _is_kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def changed(self, record: ConnectRecord, part: SchemaAndValue) -> SchemaAndValue:
        schema, value = part
        if schema is None:
            fields = required_map(value, _PURPOSE)
            kept = {
                self._renames.get(name, name): one
                for name, one in fields.items()
                if self._is_kept(name)
            }
            return SchemaAndValue(None, kept)
        struct = required_struct(value, _PURPOSE)
        replaced_schema = self._replaced_schema(struct.schema)
        replaced = Struct(replaced_schema)
        for field in struct.schema.fields:
            if self._is_kept(field.name):
                one = field_value(struct, field.name, with_default=self._with_default)
                replaced[self._renames.get(field.name, field.name)] = one
        return SchemaAndValue(replaced_schema, replaced)

    def _schema_of(self, schema: Schema) -> Schema:
        fields: dict[str, Schema] = {}
        for field in schema.fields:
            if self._is_kept(field.name):
                name = self._renames.get(field.name, field.name)
                if name in fields:
                    raise SchemaBuilderException(
                        f"Cannot create field because of field name duplication {name}"
                    )
                fields[name] = field.schema
        return bare_struct(schema, fields)


class ReplaceFieldKey(OfKey, ReplaceField):
    """Drops and renames the key's fields."""

    kafka_class = f"{PACKAGE}.ReplaceField$Key"


class ReplaceFieldValue(OfValue, ReplaceField):
    """Drops and renames the value's fields."""

    kafka_class = f"{PACKAGE}.ReplaceField$Value"
