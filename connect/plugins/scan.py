"""Finds plugins: ours, those of installed distributions, those in folders.

An entry point of the group `millstream.connectors` names a class, or a module or package whose
plugins are meant:

    [project.entry-points."millstream.connectors"]
    shop = "shop_connectors"

`plugin.path` lists folders. In each, and in each of its folders that is no package (so that every
plugin can have its own), distributions with such entry points count (`pip install --target`), and
modules and packages that lie there by themselves. The folders join the import path: plugins of two
folders share one set of libraries, unlike in Java.
"""

import importlib
import logging
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

from connect.plugins import built_in
from connect.plugins.catalogue import Plugins, kinds_of

ENTRY_POINTS: Final = "millstream.connectors"

log = logging.getLogger(__name__)


def find_plugins(plugin_path: Iterable[str] = ()) -> Plugins:
    """Find everything; what cannot be imported is logged and left out."""
    plugins = Plugins(built_in.CLASSES)
    for name in built_in.MODULES:
        _add_module(plugins, name)
    for entry_point in metadata.entry_points(group=ENTRY_POINTS):
        _add_entry_point(plugins, entry_point)
    for folder in plugin_path:
        for each in _plugin_folders(Path(folder)):
            _add_folder(plugins, each)
    return plugins


def _plugin_folders(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        log.warning("plugin.path names no folder path=%s", folder)
        return
    yield folder
    for each in sorted(folder.iterdir()):
        is_own = each.is_dir() and not each.name.startswith((".", "__"))
        if is_own and each.suffix not in (".dist-info", ".data") and not _is_package(each):
            yield each


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").exists()


def _add_folder(plugins: Plugins, folder: Path) -> None:
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)
    importlib.invalidate_caches()
    distributions = list(metadata.distributions(path=[path]))
    for distribution in distributions:
        for entry_point in distribution.entry_points.select(group=ENTRY_POINTS):
            _add_entry_point(plugins, entry_point)
    if not distributions:
        for module in pkgutil.iter_modules([path]):
            _add_module(plugins, module.name)


def _add_entry_point(plugins: Plugins, entry_point: metadata.EntryPoint) -> None:
    try:
        found = entry_point.load()
    # The outermost edge of somebody else's code: one plugin that is broken is not all of them.
    except Exception:
        log.exception("plugin cannot be loaded entry_point=%s", entry_point.value)
        return
    if isinstance(found, ModuleType):
        _add_classes(plugins, found)
    elif kinds_of(found):
        plugins.add(found)
    else:
        log.error("entry point names no plugin entry_point=%s", entry_point.value)


def _add_module(plugins: Plugins, name: str) -> None:
    try:
        module = importlib.import_module(name)
    # As above.
    except Exception:
        log.exception("plugin cannot be loaded module=%s", name)
        return
    _add_classes(plugins, module)


def _add_classes(plugins: Plugins, module: ModuleType) -> None:
    """Add what a module defines or, being a package, brings together from its own modules."""
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None) or ""
        is_own = home == module.__name__ or home.startswith(f"{module.__name__}.")
        if is_own and not name.startswith("_") and isinstance(value, type):
            plugins.add(value)
