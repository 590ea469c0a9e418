"""Reads what an issuer of OAuth tokens has to say: a file, or the answer to one HTTP request.

Size and time are bounded, and no redirect is followed. It waits: not for an event loop.
"""

import ssl
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from common.credentials.stores import Store
from common.credentials.tls import load_trusted
from common.process.clock import now_seconds

MAX_BYTES = 1 << 20
TIMEOUT_SECONDS = 10.0
CHUNK_BYTES = 64 * 1024


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: it would lead to an address that no setting allows."""

    def redirect_request(self, *arguments: object) -> None:
        """Follow none: the answer is an error then."""


def fetched(request: Request, truststore: Store | None) -> bytes:
    """Return the answer to a request, or a file. Raises OSError, ValueError, HTTPException."""
    parts = urlsplit(request.full_url)
    if parts.scheme == "file":
        with open(unquote(parts.path), "rb") as file:
            return _bounded(file.read(MAX_BYTES + 1))
    request.add_header("Accept", "application/json")
    try:
        return _answer_to(request, truststore)
    except HTTPError as error:
        error.close()
        raise OSError(str(error)) from None


def _answer_to(request: Request, truststore: Store | None) -> bytes:
    deadline = now_seconds() + TIMEOUT_SECONDS
    with _opener(truststore).open(request, timeout=TIMEOUT_SECONDS) as answer:
        text = bytearray()
        while chunk := answer.read1(CHUNK_BYTES):
            text += chunk
            _bounded(text)
            if now_seconds() > deadline:
                raise TimeoutError("the answer takes too long")
        return bytes(text)


def _opener(store: Store | None) -> OpenerDirector:
    context = ssl.create_default_context()
    if store is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        load_trusted(context, store.setting, store.read())
    return build_opener(_NoRedirects, HTTPSHandler(context=context))


def _bounded(text: "bytes | bytearray") -> bytes:
    if len(text) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    return bytes(text)
