"""/connector-plugins: list plugins and their settings, validate and preview configurations."""

from aiohttp import web

from connect.definitions import secrets
from connect.definitions.connector import CLASS, sink_config, source_config
from connect.definitions.versions import with_versions
from connect.herder.names import bad_request, not_found
from connect.plugins.catalogue import PluginKind
from connect.preview.run import Previews
from connect.rest.bodies import answer, config_of, flag, object_body
from connect.rest.desk import Desk
from millstream.connect.config.infos import config_key_info
from millstream.connect.config.types import class_name
from millstream.connect.connectors import SinkConnector, SourceConnector

_CONNECTORS = (PluginKind.SINK, PluginKind.SOURCE)
_SHOWN = (
    *_CONNECTORS,
    PluginKind.TRANSFORMATION,
    PluginKind.PREDICATE,
    PluginKind.CONVERTER,
    PluginKind.HEADER_CONVERTER,
)


class ConnectorPlugins:
    """The resource for plugins."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._previews = Previews(desk.worker.environment)

    def routes(self) -> list[web.RouteDef]:
        one = "/connector-plugins/{plugin}/config"
        return [
            web.get("/connector-plugins", self.show_all),
            web.get(one, self.show_config),
            web.put(f"{one}/validate", self.validate),
            web.post("/connector-plugins/{plugin}/preview", self.preview),
        ]

    async def show_all(self, request: web.Request) -> web.Response:
        kinds = _CONNECTORS if flag(request, "connectorsOnly", default=True) else _SHOWN
        shown = []
        for kind, plugin in self._desk.plugins.all(*kinds):
            version = getattr(plugin, "version", lambda: "undefined")()
            known = {} if version == "undefined" else {"version": version}
            shown.append({"class": class_name(plugin), "type": kind.value, **known})
        return answer(shown)

    async def show_config(self, request: web.Request) -> web.Response:
        name = request.match_info["plugin"]
        try:
            plugin = self._desk.plugins.find(name, *_SHOWN)
        except LookupError:
            raise not_found(f"Unknown plugin {name}.") from None
        keys = dict(plugin.config().keys)
        if issubclass(plugin, SinkConnector | SourceConnector):
            common = sink_config() if issubclass(plugin, SinkConnector) else source_config()
            versioned = with_versions(common, self._desk.plugins, plugin, {}, {})
            keys |= {n: key for n, key in versioned.keys.items() if n not in keys}
        return answer([config_key_info(key) for key in keys.values()])

    async def validate(self, request: web.Request) -> web.Response:
        return answer(await self._desk.validated(await _config(request)))

    async def preview(self, request: web.Request) -> web.Response:
        """Show what a configuration would do with ten records; this writes nothing."""
        config = await _config(request)
        config.setdefault(CLASS, request.match_info["plugin"])
        before = self._desk.herder.config.connector_configs.get(config.get("name") or "", {})
        config = secrets.kept(self._desk.plugins, before, config)
        await self._desk.require_valid(config)
        return answer(await self._previews.preview(config))


async def _config(request: web.Request) -> dict[str, str | None]:
    """Parse a configuration of the plugin that the path names. Raises RefusalError."""
    name = request.match_info["plugin"]
    config = config_of(await object_body(request))
    included = config.get(CLASS)
    if included is not None and not _bare(included).endswith(_bare(name)):
        raise bad_request(f"Included connector type {included} does not match request type {name}")
    return config


def _bare(name: str) -> str:
    return name.removesuffix("Connector") or name
