"""The built-in converters, by the names that configurations use."""

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
from millstream.connect.plugins import ConnectPlugin, HeaderConverter

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


def by_name(*plugins: type[ConnectPlugin]) -> dict[str, type[ConnectPlugin]]:
    """Return plugins by each of their names: Kafka's class, our class, the simple class name."""
    return {
        name: plugin
        for plugin in plugins
        for name in (
            plugin.kafka_class,
            f"{plugin.__module__}.{plugin.__qualname__}",
            plugin.__name__,
        )
        if name is not None
    }
