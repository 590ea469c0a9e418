"""The plugins that are always there: add a module or a tuple of classes here.

Modules are imported when a worker starts. What is large (a database's driver, an Elasticsearch
client) they import where it is used, so that an idle worker stays small and a connector whose
library is not installed can still be listed.
"""

from typing import Any, Final

from connect.config_providers.providers import CONFIG_PROVIDERS
from connect.converters.header_converter import SimpleHeaderConverter
from connect.converters.json_converter import JsonConverter
from connect.converters.primitives import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
from connect.converters.settings import RecordConverter
from connect.predicates.predicates import PREDICATES
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
from millstream.connect.plugins import HeaderConverter

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
CONVERTERS: tuple[type[RecordConverter], ...] = (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    JsonConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
# The converters above serve headers too.
HEADER_CONVERTERS: tuple[type[HeaderConverter], ...] = (
    *CONVERTERS,
    SimpleHeaderConverter,
)

CLASSES: Final[tuple[type, ...]] = (
    *CONVERTERS,
    *HEADER_CONVERTERS,
    *CONFIG_PROVIDERS,
    *TRANSFORMS,
    *PREDICATES,
)
MODULES: Final[tuple[str, ...]] = (
    "connect.connectors.elasticsearch",
    "connect.connectors.file_stream",
    "connect.connectors.jdbc",
    "connect.connectors.object_store",
    "connect.connectors.postgresql.source",
    "mirror.offsets.checkpoint_connector",
    "mirror.heartbeat",
    "mirror.copying.source",
    "connect.registry_converters.avro",
    "connect.registry_converters.json_schema",
    "connect.registry_converters.protobuf",
)
