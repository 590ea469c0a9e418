"""The optional library that reads client metrics (`millstream[telemetry]`)."""

from functools import cache
from importlib.util import find_spec


@cache
def has_library() -> bool:
    """Return whether `opentelemetry-proto` is installed; it is not imported."""
    try:
        return find_spec("opentelemetry.proto.metrics") is not None
    except ModuleNotFoundError:
        return False
