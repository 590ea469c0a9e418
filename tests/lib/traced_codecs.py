"""Codecs whose memory is traced, at a twentieth of what that takes.

For every allocation tracemalloc asks for the line, and Python reads a function's table of lines
from its start to find it: a codec is one long function, and that was nearly all of a test's time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def codecs_without_lines(codecs: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Take the tables of lines from some codecs, and give them back."""
    functions = [codec for codec in codecs if isinstance(codec, FunctionType)]
    whole = [(function, function.__code__) for function in dict.fromkeys(functions)]
    for function, code in whole:
        function.__code__ = code.replace(co_linetable=b"")
    try:
        yield
    finally:
        for function, code in whole:
            function.__code__ = code
