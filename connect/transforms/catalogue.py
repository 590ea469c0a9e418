"""The list of all transformations that ship with Kafka Connect."""

from typing import Any, Final

from connect.transforms.cast import CastKey, CastValue
from connect.transforms.field_access import (
    ExtractFieldKey,
    ExtractFieldValue,
    HoistFieldKey,
    HoistFieldValue,
)
from connect.transforms.flatten import FlattenKey, FlattenValue
from connect.transforms.headers import DropHeaders, HeaderFromKey, HeaderFromValue, InsertHeader
from connect.transforms.insert_field import InsertFieldKey, InsertFieldValue
from connect.transforms.mask_field import MaskFieldKey, MaskFieldValue
from connect.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from connect.transforms.routers import Filter, RegexRouter, TimestampRouter
from connect.transforms.schema_metadata import (
    SetSchemaMetadataKey,
    SetSchemaMetadataValue,
    ValueToKey,
)
from connect.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from millstream.connect import Transformation

TRANSFORMS: Final[tuple[type[Transformation[Any]], ...]] = (
    CastKey,
    CastValue,
    DropHeaders,
    ExtractFieldKey,
    ExtractFieldValue,
    Filter,
    FlattenKey,
    FlattenValue,
    HeaderFromKey,
    HeaderFromValue,
    HoistFieldKey,
    HoistFieldValue,
    InsertFieldKey,
    InsertFieldValue,
    InsertHeader,
    MaskFieldKey,
    MaskFieldValue,
    RegexRouter,
    ReplaceFieldKey,
    ReplaceFieldValue,
    SetSchemaMetadataKey,
    SetSchemaMetadataValue,
    TimestampConverterKey,
    TimestampConverterValue,
    TimestampRouter,
    ValueToKey,
)
