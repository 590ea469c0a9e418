"""Makes the plugins of a record from a configuration: converters, transformations, predicates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.definitions.connector import PLUGIN_VERSION
from connect.definitions.plugged import NEGATE, PREDICATE, aliases
from connect.plugins.catalogue import PluginKind, Plugins
from connect.worker.client_settings import with_prefix
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import Converter, HeaderConverter, Predicate, Transformation

Config = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TransformationStage:
    """One transformation, and the predicate that selects its records."""

    transformation: Transformation[Any]
    predicate: Predicate[Any] | None = None
    is_negated: bool = False

    def applies_to(self, record: Any) -> bool:
        return self.predicate is None or self.predicate.test(record) is not self.is_negated


@dataclass(frozen=True, slots=True)
class Converters:
    """A task's converters for keys, values and headers."""

    key: Converter
    value: Converter
    header: HeaderConverter


def converters_of(plugins: Plugins, worker: WorkerSettings, config: Config) -> Converters:
    """Return the connector's converters, else the worker's. Raises ConfigException."""
    key, key_settings = _converter(plugins, worker, config, "key")
    value, value_settings = _converter(plugins, worker, config, "value")
    header, header_settings = _converter(plugins, worker, config, "header")
    key.configure(key_settings, True)
    value.configure(value_settings, False)
    header.configure({"converter.type": "header", **header_settings})
    return Converters(key, value, header)


def _converter(
    plugins: Plugins, worker: WorkerSettings, config: Config, part: str
) -> tuple[Any, Config]:
    name, settings = worker.converter(part)
    own = config.get(f"{part}.converter")
    if own is not None:
        # The settings of a converter come from the same place as its name.
        name, settings = own, with_prefix(config, f"{part}.converter.")
    kind = PluginKind.HEADER_CONVERTER if part == "header" else PluginKind.CONVERTER
    return _made(plugins, f"{part}.converter", name, kind), settings


def _made(plugins: Plugins, setting: str, name: str | None, kind: PluginKind) -> Any:
    try:
        return plugins.find(name or "", kind)()
    except LookupError:
        raise ConfigException.of_value(setting, name, f"Class {name} could not be found.") from None


def stages_of(plugins: Plugins, config: Config) -> list[TransformationStage]:
    """Make the transformations in their order. Raises ConfigException."""
    return [_stage(plugins, config, alias) for alias in aliases(config, "transforms")]


def _stage(plugins: Plugins, config: Config, alias: str) -> TransformationStage:
    prefix = f"transforms.{alias}."
    settings = with_prefix(config, prefix)
    settings.pop(PLUGIN_VERSION, None)
    name = settings.pop("type", None)
    predicate_alias = settings.pop(PREDICATE, None)
    is_negated = (settings.pop(NEGATE, None) or "").lower() == "true"
    transformation = _made(plugins, f"{prefix}type", name, PluginKind.TRANSFORMATION)
    transformation.configure(settings)
    if predicate_alias is None:
        return TransformationStage(transformation)
    prefix = f"predicates.{predicate_alias}."
    settings = with_prefix(config, prefix)
    settings.pop(PLUGIN_VERSION, None)
    name = settings.pop("type", None)
    predicate = _made(plugins, f"{prefix}type", name, PluginKind.PREDICATE)
    predicate.configure(settings)
    return TransformationStage(transformation, predicate, is_negated)
