"""Connect in the demo: a worker between the shop's database, the topics, and files.

The configurations of its connectors are in `connectors/`; they take addresses from the worker's
environment. The connectors copy products, stock and customers from the database to compacted
topics, and write orders to Parquet files in a folder for each state, and to Elasticsearch if one is
given.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.credentials.access import KafkaAccess
from demo.pipeline.topics import wait_for_keys
from millstream.processes.child_processes import Children

ELASTICSEARCH_CONNECTOR = "orders-to-elasticsearch"
CONNECTORS = ("shop-products", "shop-stock", "shop-customers", "orders-to-parquet")
_FOLDER = Path(str(files("demo.pipeline"))) / "connectors"
_SQLITE = "sqlite:///"
_WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "offset.flush.interval.ms": "1000",
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


@dataclass(frozen=True, slots=True)
class Places:
    """The database, the folder of files and the Elasticsearch of the connectors."""

    shop_url: str
    files: Path
    elasticsearch_url: str

    def environment(self) -> dict[str, str]:
        """Return the environment variables that the connectors' settings use."""
        return {
            "SHOP_URL": self.shop_url,
            "FILES_URL": self.files.as_uri(),
            "ELASTICSEARCH_URL": self.elasticsearch_url,
        }

    def directories(self) -> str:
        """Return the directories whose files the connectors may use."""
        found = [self.files.parent]
        if self.shop_url.startswith(_SQLITE):
            found.append(Path(self.shop_url.removeprefix(_SQLITE)).absolute().parent)
        return ",".join(dict.fromkeys(map(str, found)))

    def shown(self) -> dict[str, str]:
        """Return the places to show to the user, by name, without passwords."""
        files = {"orders' files": str(self.files)}
        is_ours = self.shop_url.startswith(_SQLITE)
        return {"database": self.shop_url.removeprefix(_SQLITE), **files} if is_ours else files


def connectors(elasticsearch_url: str) -> list[str]:
    """Return the names of the connectors; an empty URL means no Elasticsearch."""
    return [*CONNECTORS, *([ELASTICSEARCH_CONNECTOR] if elasticsearch_url else [])]


def connector_file(name: str) -> Path:
    """Return the file of a connector's configuration."""
    return _FOLDER / f"{name}.json"


def connector_config(name: str) -> dict[str, Any]:
    """Return a connector's configuration."""
    found: dict[str, Any] = json.loads(connector_file(name).read_text(encoding="utf-8"))
    return found


def why_no_worker(shop_url: str, elasticsearch_url: str) -> str | None:
    """Return what is missing for the worker; None if it can run."""
    needed = {"authlib": "registry", "pyarrow": "object-store"}
    if shop_url.startswith("postgresql"):
        needed["psycopg"] = "postgresql"
    if elasticsearch_url:
        needed["elasticsearch"] = "elasticsearch"
    missing = [extra for package, extra in needed.items() if find_spec(package) is None]
    return f"pip install 'millstream[{','.join(missing)}]'" if missing else None


def make_places(folder: Path, shop_url: str, elasticsearch_url: str) -> Places:
    """Return the places; those that are not given are created in the demo's folder."""
    orders, shop = folder.absolute() / "orders", folder.absolute() / "shop.sqlite"
    shutil.rmtree(orders, ignore_errors=True)
    shop.unlink(missing_ok=True)
    return Places(shop_url or f"sqlite:///{shop}", orders, elasticsearch_url)


async def start_worker(
    children: Children,
    places: Places,
    folder: Path,
    bootstrap_servers: str,
    registry_url: str,
    url: str,
) -> None:
    """Start the worker; its properties and offsets are in `folder`."""
    told = {
        "bootstrap.servers": bootstrap_servers,
        "value.converter.schema.registry.url": registry_url,
        "listeners": url,
        "file.allowed.directories": places.directories(),
    }
    await children.start(
        "connect",
        "connect",
        *("start", str(_write_properties(folder, told))),
        *(str(connector_file(name)) for name in connectors(places.elasticsearch_url)),
        environment=places.environment(),
        # Its offsets are in its file and in the topics, so it continues from there.
        is_revived=True,
    )


async def wait_until_there(
    kafka: KafkaAccess, product_ids: Iterable[str], customer_ids: Iterable[str]
) -> None:
    """Wait until products, stock and customers are in their topics."""
    products = set(product_ids)
    wanted = {"products": products, "warehouse-inventory": products, "customers": customer_ids}
    await wait_for_keys(kafka, wanted)


def _write_properties(folder: Path, told: Mapping[str, str]) -> Path:
    offsets = {"offset.storage.file.filename": str(folder / "connect-offsets")}
    lines = [f"{name}={value}\n" for name, value in {**_WORKER, **offsets, **told}.items()]
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "connect.properties"
    properties.write_text("".join(lines), encoding="utf-8")
    return properties
