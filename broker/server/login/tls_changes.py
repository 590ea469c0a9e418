"""Whether new keys and certificates may replace those in use, while other nodes keep theirs.

The rules are those of Apache Kafka (SslFactory). A change adds and removes no store. The new
certificate has the subject of the old one, and at least its alternative names. On a listener that
nodes use among themselves, a node with the new stores and a node with the old ones trust each
other, in both directions: the certificates of a cluster change node by node. The old certificate
may have expired meanwhile; the new one must be valid.

Both questions are answered by handshakes in memory, because the module `ssl` tells the content of a
certificate only after it has verified the certificate.
"""

import ssl
from dataclasses import replace
from typing import Any, NamedTuple

from broker.config.security_config import ClientSecurity
from broker.server.login.certificate_names import subject_text
from broker.server.login.tls_contexts import Loaded, context_of, load_own_key
from common.credentials.stores import StoreError
from common.credentials.tls import load_trusted
from common.kafka.errors import ErrorCode, KafkaError

NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME."""
MAX_ROUNDS = 20
"""A handshake takes two or three."""


class Ends(NamedTuple):
    """The stores of both ends of the connections between nodes, at one listener of this node."""

    server: Loaded
    client: Loaded


class _Shown(NamedTuple):
    """The names in a certificate."""

    subject: str
    names: frozenset[tuple[str, str]]


def refused(why: str) -> KafkaError:
    """Return the refusal of a change."""
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def check_change(old: Loaded, new: Loaded) -> None:
    """Raise INVALID_REQUEST if the new stores may not replace the old ones."""
    if (old.key is None) != (new.key is None):
        raise refused("A keystore can be exchanged at run time, but not added or removed.")
    if old.trusted is None and new.trusted is not None:
        raise refused("A truststore can be exchanged at run time, but not added.")
    if old.key is not None and old.key != new.key:
        _check_names(_shown(old), _shown(new), new)


def _check_names(old: _Shown, new: _Shown, loaded: Loaded) -> None:
    allowed = loaded.config.allowed_changes
    if not allowed.subject and old.subject.lower() != new.subject.lower():
        raise refused(
            f"The new certificate has the subject {new.subject!r}, the old one {old.subject!r}; "
            "ssl.allow.dn.changes=true allows it."
        )
    missing = old.names - new.names
    if not allowed.names and missing:
        listed = ", ".join(sorted(f"{kind}:{name}" for kind, name in missing))
        raise refused(
            f"The new certificate lacks names of the old one: {listed}; "
            "ssl.allow.san.changes=true allows it."
        )


def check_between_nodes(old: Ends, new: Ends) -> None:
    """Raise INVALID_REQUEST unless nodes with the old and with the new stores trust each other."""
    for server, client, is_timeless, pair in (
        (new.server, new.client, False, "the new keystore and the new truststore"),
        (old.server, new.client, True, "the old keystore and the new truststore"),
        (new.server, old.client, True, "the new keystore and the old truststore"),
    ):
        try:
            _shake_hands(
                _timeless(context_of(server), is_timeless),
                _timeless(context_of(_of_any_host(client)), is_timeless),
            )
        except OSError as error:
            raise refused(
                f"Nodes use this listener among themselves, and with {pair} they do not trust "
                f"each other: {error}"
            ) from error


def _of_any_host(client: Loaded) -> Loaded:
    """Return the same stores for a handshake in memory, where the server has no host name."""
    assert isinstance(client.config, ClientSecurity), client.config
    return client._replace(config=replace(client.config, verifies_host=False))


def _timeless(context: ssl.SSLContext, is_timeless: bool) -> ssl.SSLContext:
    if is_timeless:
        context.verify_flags |= NO_CHECK_TIME
    return context


def _shown(loaded: Loaded) -> _Shown:
    """Return the names in the certificate of a keystore; raise INVALID_REQUEST.

    It is shown by the kind of end that it is for, because a certificate may be for servers or for
    clients only.
    """
    assert loaded.key is not None, loaded.config
    is_client = isinstance(loaded.config, ClientSecurity)
    server, client = (
        ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
    )
    client.check_hostname = False
    verifying = server if is_client else client
    try:
        for context in (server, client):
            context.verify_mode = ssl.CERT_REQUIRED if context is verifying else ssl.CERT_NONE
            load_own_key(context, loaded)
        load_trusted(verifying, "ssl.keystore.certificate.chain", loaded.key)
        verifying.verify_flags |= NO_CHECK_TIME | ssl.VERIFY_X509_PARTIAL_CHAIN
        ends = _shake_hands(server, client)
    except (OSError, StoreError) as error:
        raise refused(f"The certificate cannot be shown: {error}") from error
    verified = ends[0 if is_client else 1]
    certificate: Any = verified.getpeercert()
    encoded = verified.getpeercert(True)
    assert encoded is not None, "the other end is verified"
    return _Shown(subject_text(encoded), frozenset(certificate.get("subjectAltName", ())))


def _shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends after a handshake in memory, the server's first; raise OSError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server),
    )
    waiting = list(ends)
    for _ in range(MAX_ROUNDS):
        waiting = [end for end in waiting if not _is_done(end)]
        if not waiting:
            return ends
    raise OSError("the handshake does not end")


def _is_done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
