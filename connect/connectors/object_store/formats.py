"""Serialize files: Parquet, Avro container files, JSON lines, or unchanged bytes."""

import gzip
import re
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

import fastavro
import pyarrow as pa
from pyarrow import parquet

from connect.connectors.object_store.files import File
from connect.connectors.object_store.settings import short
from connect.converters.json_converter import JsonConverter
from connect.registry_converters.avro_data import to_avro
from connect.registry_converters.avro_schema import AvroForms, avro_of
from millstream.connect import DataException, Schema, Struct
from millstream.connect.data.logical import scale_of
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type

Format = Callable[[File], bytes]
_DIGITS: Final = 38
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_LOGICAL: Final = {
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    TIMESTAMP: pa.timestamp("ms", tz="UTC"),
}


def format_of(parsed: Mapping[str, Any]) -> Format:
    """Return the function that serializes files by the settings. It raises DataException."""
    match short(parsed["format.class"]):
        case "ParquetFormat":
            codec = parsed["parquet.codec"]
            return lambda file: _parquet(file, codec)
        case "AvroFormat":
            forms = AvroForms(
                is_enhanced=parsed["enhanced.avro.schema.support"],
                has_meta_data=parsed["connect.meta.data"],
            )
            avro_codec = parsed["avro.codec"]
            return lambda file: _avro(file, avro_codec, forms)
        case "ByteArrayFormat":
            separator = (parsed["format.bytearray.separator"] or "\n").encode()
            return _packed(parsed, lambda file: _bytes(file, separator))
        case _:
            decimals = parsed["json.decimal.format"]
            return _packed(parsed, lambda file: _json(file, decimals))


def _packed(parsed: Mapping[str, Any], write: Format) -> Format:
    if parsed["s3.compression.type"] == "none":
        return write
    level = parsed["s3.compression.level"]
    # Without a timestamp in the header, a file that is written again has the same bytes.
    return lambda file: gzip.compress(write(file), 6 if level < 0 else level, mtime=0)


def _parquet(file: File, codec: str) -> bytes:
    schema = _struct_schema(file)
    _require_fields(schema, file.path)
    arrow = pa.schema([_arrow_field(field.name, field.schema) for field in schema.fields])
    try:
        table = pa.Table.from_pylist([_plain(value) for value in file.values], schema=arrow)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataException(f"Parquet cannot hold the values: {error}") from error
    buffer = BytesIO()
    parquet.write_table(table, buffer, compression=codec)
    return buffer.getvalue()


def _struct_schema(file: File) -> Schema:
    if file.schema is None or file.schema.type is not Type.STRUCT:
        raise DataException(
            f"{file.path} needs structs with a schema as values: use a converter with "
            "schemas, or JsonFormat"
        )
    return file.schema


def _require_fields(schema: Schema | None, where: str) -> None:
    """Raise DataException for a struct without fields, which Parquet does not support."""
    if schema is None:
        return
    if schema.type is Type.STRUCT and not schema.fields:
        raise DataException(f"Parquet does not support a struct without fields: {where}")
    for field in schema.fields if schema.type is Type.STRUCT else ():
        _require_fields(field.schema, f"{where}.{field.name}")
    if schema.type in (Type.ARRAY, Type.MAP):
        _require_fields(schema.value_schema, f"{where}[]")
    if schema.type is Type.MAP:
        _require_fields(schema.key_schema, f"{where} (key)")


def _arrow_field(name: str, schema: Schema) -> Any:
    return pa.field(name, _arrow_type(schema), nullable=schema.optional)


def _arrow_type(schema: Schema) -> Any:
    if schema.name == DECIMAL:
        scale = scale_of(schema)
        if not 0 <= scale <= _DIGITS:
            raise DataException(f"Parquet does not support decimals of scale {scale}")
        return pa.decimal128(_DIGITS, scale)
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return logical
    match schema.type:
        case Type.STRUCT:
            return pa.struct([_arrow_field(field.name, field.schema) for field in schema.fields])
        case Type.ARRAY if schema.value_schema is not None:
            return pa.list_(_arrow_field("element", schema.value_schema))
        case Type.MAP if schema.key_schema is not None and schema.value_schema is not None:
            key = pa.field("key", _arrow_type(schema.key_schema), nullable=False)
            return pa.map_(key, _arrow_field("value", schema.value_schema))
        case Type.ARRAY | Type.MAP:
            raise DataException("An array or a map has no schema for its entries")
        case _:
            return _SIMPLE[schema.type]


def _plain(value: Any) -> Any:
    """Return a value in Arrow's types."""
    match value:
        case Struct():
            return {field.name: _plain(one) for field, one in value.items()}
        case dict():
            return [(_plain(key), _plain(one)) for key, one in value.items()]
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def _avro(file: File, codec: str, forms: AvroForms) -> bytes:
    schema = _struct_schema(file)
    _require_avro_names(schema)
    buffer = BytesIO()
    # A fixed marker between blocks: with a random one, a rewritten file would differ.
    marker = file.path.encode().ljust(16)[-16:]
    rows = [to_avro(schema, value) for value in file.values]
    try:
        fastavro.writer(buffer, avro_of(schema, forms), rows, codec=codec, sync_marker=marker)
    # fastavro has no common error for a value that does not match the schema.
    except Exception as error:
        raise DataException(f"Avro cannot hold the values: {error}") from error
    return buffer.getvalue()


def _require_avro_names(schema: Schema | None) -> None:
    """Raise DataException for a field with a name that other readers of Avro refuse."""
    if schema is None:
        return
    for field in schema.fields if schema.type is Type.STRUCT else ():
        if not _AVRO_NAME.fullmatch(field.name):
            raise DataException(
                f"Avro does not allow the name of the field {field.name!r}: use the transformation "
                "ReplaceField, or another format"
            )
        _require_avro_names(field.schema)
    if schema.type in (Type.ARRAY, Type.MAP):
        _require_avro_names(schema.value_schema)
    if schema.type is Type.MAP:
        _require_avro_names(schema.key_schema)


def _json(file: File, decimals: str) -> bytes:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false", "decimal.format": decimals}, False)
    lines = (converter.from_connect_data("", file.schema, value) for value in file.values)
    return b"".join((line or b"null") + b"\n" for line in lines)


def _bytes(file: File, separator: bytes) -> bytes:
    for value in file.values:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise DataException(
                f"ByteArrayFormat needs bytes, as ByteArrayConverter reads them: {file.path} has a "
                f"{type(value).__name__}"
            )
    return b"".join(bytes(value) + separator for value in file.values)
