"""The plugins that are always there: add a module or a tuple of classes here.

Modules are imported when a worker starts. What is large (a database's driver, an Elasticsearch
client) they import where it is used, so that an idle worker stays small and a connector whose
library is not installed can still be listed.
"""

from typing import Final

from connect.config_providers.providers import CONFIG_PROVIDERS
from connect.converters.catalogue import CONVERTERS, HEADER_CONVERTERS
from connect.predicates.predicates import PREDICATES
from connect.transforms.catalogue import TRANSFORMS

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
