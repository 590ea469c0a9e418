"""The services of this package, by what each declares in its `__main__`."""

import pkgutil
from importlib import import_module

import services
from common.processing.declared import Declared


def declared() -> list[Declared]:
    """Return the group and the topics of every service."""
    names = sorted(found.name for found in pkgutil.iter_modules(services.__path__) if found.ispkg)
    found = [import_module(f"services.{name}.__main__").SERVICE for name in names]
    return [Declared(one.name, one.topics) for one in found]
