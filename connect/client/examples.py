"""Two ways to use each command of `millstream connect`, which its `--help` shows."""

from collections.abc import Mapping
from typing import Final

_AT: Final = "--url http://127.0.0.1:8083"

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "start": (
        "millstream connect start worker.properties",
        "millstream connect start worker.properties shop.json files.properties",
    ),
    "list": ("millstream connect list", f"millstream connect list --json {_AT}"),
    "status": ("millstream connect status shop", f"millstream connect status shop --json {_AT}"),
    "tasks": ("millstream connect tasks shop", f"millstream connect tasks shop --json {_AT}"),
    "topics": ("millstream connect topics shop", "millstream connect topics shop --reset"),
    "offsets": (
        "millstream connect offsets shop",
        "millstream connect offsets shop --alter offsets.json",
    ),
    "validate": (
        "millstream connect validate shop.json",
        "cat shop.json | millstream connect validate -",
    ),
    "preview": (
        "millstream connect preview shop.json",
        "millstream connect preview shop.json --json",
    ),
    "create": (
        "millstream connect create shop.json",
        "millstream connect create shop.properties --state stopped",
    ),
    "config": (
        "millstream connect config shop",
        "millstream connect config shop --set tasks.max=2 --remove transforms",
    ),
    "pause": ("millstream connect pause shop", "millstream connect pause shop files"),
    "resume": ("millstream connect resume shop", "millstream connect resume shop files"),
    "stop": ("millstream connect stop shop", "millstream connect stop shop files"),
    "delete": ("millstream connect delete shop", "millstream connect delete shop files"),
    "restart": (
        "millstream connect restart shop",
        "millstream connect restart shop --include-tasks --only-failed",
    ),
    "plugins": ("millstream connect plugins", "millstream connect plugins FileStreamSink"),
    "loggers": (
        "millstream connect loggers",
        "millstream connect loggers connect.worker --level DEBUG --scope cluster",
    ),
    "worker": ("millstream connect worker", f"millstream connect worker --json {_AT}"),
}
