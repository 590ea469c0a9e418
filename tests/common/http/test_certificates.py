"""The machine's certificates are read when TLS is spoken, and then all of them."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = (
    "common.processing.runner",
    "schemas.registry.__main__",
    "connect.rest.server",
    "streams.web",
    "spark_analytics.dashboard.app",
)
"""Of each program built on aiohttp one that imports it."""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_no_program_reads_them_as_it_starts(module: str) -> None:
    """A start reads nothing: aiohttp's own context, made as it is imported, waits."""
    read = run(
        f"import ssl, {module}, aiohttp.connector\n"
        "context = aiohttp.connector._SSL_CONTEXT_VERIFIED\n"
        "print(super(ssl.SSLContext, context).cert_store_stats()['x509'])"
    )
    assert read == "0"


@pytest.mark.parametrize(
    "asks", ["cert_store_stats()", "wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())"]
)
def test_who_needs_them_has_all(asks: str) -> None:
    expected = len(ssl.create_default_context().get_ca_certs())
    found = run(
        "import ssl; from common.http.certificates import read_when_needed; read_when_needed()\n"
        "context = ssl.create_default_context()\n"
        f"context.{asks}\n"
        "assert 'wrap_bio' not in vars(context)\n"
        "print(len(context.get_ca_certs()))"
    )
    assert int(found) == expected
