"""The machine's certificates, read when a TLS connection is made with them and not before.

aiohttp makes a TLS context as it is imported, which reads every certificate the machine trusts: 50
ms and 2.6 MB of each process, most of which never speak TLS. A context of Python's `ssl` is told to
read them by `load_default_certs`; from `read_when_needed` on it does so with its first connection,
or when it is asked what it has read.
"""

import ssl
from typing import Any

_NEEDS_THEM = ("wrap_bio", "wrap_socket", "cert_store_stats", "get_ca_certs")

_read_now = ssl.SSLContext.load_default_certs


def read_when_needed() -> None:
    """Have every TLS context of this process read them at its first use. Call it before aiohttp is
    imported."""
    ssl.SSLContext.load_default_certs = _read_later  # type: ignore[assignment, method-assign]


def _read_later(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    def reading_first(name: str) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            for each in _NEEDS_THEM:
                vars(context).pop(each, None)
            _read_now(context, purpose)
            return getattr(context, name)(*arguments, **named)

        return run

    for name in _NEEDS_THEM:
        setattr(context, name, reading_first(name))
