"""Codecs with traced memory, at a twentieth of the usual time.

For every allocation tracemalloc needs the line, and Python reads a function's line table from its
start to find it. A codec is one long function, so this would take nearly all of a test's time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def codecs_without_lines(codecs: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Remove the line tables of some codecs, and restore them."""
    functions = [codec for codec in codecs if isinstance(codec, FunctionType)]
    whole = [(function, function.__code__) for function in dict.fromkeys(functions)]
    for function, code in whole:
        function.__code__ = code.replace(co_linetable=b"")
    try:
        yield
    finally:
        for function, code in whole:
            function.__code__ = code
