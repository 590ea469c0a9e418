"""All plugins of a worker, found by Kafka's class name, by ours or by an alias.

`FileStreamSourceConnector` goes by four names: the class of Kafka Connect it stands for, its own
`module.Class`, its class alone, and that without its kind (`FileStreamSource`). A name that two
classes of a kind go by means neither of them.
"""

import inspect
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from millstream.connect.config.types import class_name
from millstream.connect.connectors import Connector, SinkConnector, SourceConnector
from millstream.connect.plugins import (
    ConfigProvider,
    ConnectPlugin,
    Converter,
    HeaderConverter,
    Predicate,
    Transformation,
)


class PluginKind(Enum):
    """The kinds of plugins, with the names that /connector-plugins shows."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONFIG_PROVIDER = "configprovider"


_CLASSES: dict[PluginKind, type] = {
    PluginKind.SOURCE: SourceConnector,
    PluginKind.SINK: SinkConnector,
    PluginKind.CONVERTER: Converter,
    PluginKind.HEADER_CONVERTER: HeaderConverter,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
    PluginKind.CONFIG_PROVIDER: ConfigProvider,
}
_BARE = {*_CLASSES.values(), Connector, ConnectPlugin}
_SUFFIXES: dict[PluginKind, tuple[str, ...]] = {
    PluginKind.SOURCE: ("Connector",),
    PluginKind.SINK: ("Connector",),
    PluginKind.CONVERTER: ("Converter",),
    PluginKind.HEADER_CONVERTER: ("HeaderConverter", "Converter"),
    PluginKind.TRANSFORMATION: ("Transformation",),
    PluginKind.PREDICATE: ("Predicate",),
    PluginKind.CONFIG_PROVIDER: ("ConfigProvider",),
}


def kinds_of(candidate: object) -> list[PluginKind]:
    """Tell what a class can be plugged in as; one that lacks methods is nothing."""
    if not isinstance(candidate, type) or candidate in _BARE or inspect.isabstract(candidate):
        return []
    return [kind for kind, base in _CLASSES.items() if issubclass(candidate, base)]


class Plugins:
    """Owns what was found. Of two classes with one full name the one found first counts."""

    def __init__(self, found: Iterable[type] = ()) -> None:
        self._by_kind: dict[PluginKind, dict[str, type]] = {kind: {} for kind in PluginKind}
        self._by_name: dict[PluginKind, dict[str, type | None]] = {kind: {} for kind in PluginKind}
        for plugin in found:
            self.add(plugin)

    def add(self, plugin: type) -> None:
        for kind in kinds_of(plugin):
            known = self._by_kind[kind].setdefault(class_name(plugin), plugin)
            if known is plugin:
                self._name(kind, plugin)

    def _name(self, kind: PluginKind, plugin: type) -> None:
        names = self._by_name[kind]
        for name in _names(kind, plugin):
            names[name] = plugin if names.get(name, plugin) is plugin else None

    def all(self, *kinds: PluginKind) -> Iterator[tuple[PluginKind, type]]:
        """Give the plugins of these kinds, by name; of all kinds when none is given."""
        for kind in kinds or PluginKind:
            for _, plugin in sorted(self._by_kind[kind].items()):
                yield kind, plugin

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len({plugin for found in self._by_kind.values() for plugin in found.values()})

    def find(self, name: str, *kinds: PluginKind) -> Any:
        """Return the class of a name. Raises LookupError, saying what there is."""
        for kind in kinds or PluginKind:
            plugin = self._by_name[kind].get(name)
            if plugin is not None:
                return plugin
        raise LookupError(name)

    def connector(self, name: str) -> type[Connector]:
        """Return a connector's class. Raises LookupError."""
        found: type[Connector] = self.find(name, PluginKind.SOURCE, PluginKind.SINK)
        return found


def _names(kind: PluginKind, plugin: type) -> set[str]:
    full = class_name(plugin)
    names = {full, f"{plugin.__module__}.{plugin.__qualname__}", plugin.__name__}
    names.add(full.rpartition(".")[2])
    bare = {name for name in names if "." not in name}
    short = {name.removesuffix(suffix) for name in bare for suffix in _SUFFIXES[kind]}
    return names | (short - {""})
