"""Two ways to use each command of `millrace connect`, which its `--help` shows."""

from collections.abc import Mapping
from typing import Final

_AT: Final = "--url http://127.0.0.1:8083"

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "start": (
        "millrace connect start worker.properties",
        "millrace connect start worker.properties shop.json files.properties",
    ),
    "list": ("millrace connect list", f"millrace connect list --json {_AT}"),
    "status": ("millrace connect status shop", f"millrace connect status shop --json {_AT}"),
    "tasks": ("millrace connect tasks shop", f"millrace connect tasks shop --json {_AT}"),
    "topics": ("millrace connect topics shop", "millrace connect topics shop --reset"),
    "offsets": (
        "millrace connect offsets shop",
        "millrace connect offsets shop --alter offsets.json",
    ),
    "validate": (
        "millrace connect validate shop.json",
        "cat shop.json | millrace connect validate -",
    ),
    "preview": ("millrace connect preview shop.json", "millrace connect preview shop.json --json"),
    "create": (
        "millrace connect create shop.json",
        "millrace connect create shop.properties --state stopped",
    ),
    "config": (
        "millrace connect config shop",
        "millrace connect config shop --set tasks.max=2 --remove transforms",
    ),
    "pause": ("millrace connect pause shop", "millrace connect pause shop files"),
    "resume": ("millrace connect resume shop", "millrace connect resume shop files"),
    "stop": ("millrace connect stop shop", "millrace connect stop shop files"),
    "delete": ("millrace connect delete shop", "millrace connect delete shop files"),
    "restart": (
        "millrace connect restart shop",
        "millrace connect restart shop --include-tasks --only-failed",
    ),
    "plugins": ("millrace connect plugins", "millrace connect plugins FileStreamSink"),
    "loggers": (
        "millrace connect loggers",
        "millrace connect loggers connect.worker --level DEBUG --scope cluster",
    ),
    "worker": ("millrace connect worker", f"millrace connect worker --json {_AT}"),
}
