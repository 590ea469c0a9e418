"""How a tool connects to a secured cluster, from the properties of `--command-config`.

They are those of a client, or those of a node: then the tool connects as that node does.
"""

from collections.abc import Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import ClientSecurity, read_client_security
from broker.server.clock import random_uuid
from broker.server.login.logins import login_of
from broker.server.login.tls_contexts import make_client_context
from common.credentials.connecting import Security
from common.credentials.sasl_client import Begun


def client_security(properties: Mapping[str, str], *, of_controllers: bool) -> Security:
    """Return TLS and the login of a client; raises KafkaError(INVALID_CONFIG)."""
    read = _read(properties, of_controllers=of_controllers)
    tls = make_client_context(read) if read.protocol.uses_tls else None
    if not read.protocol.uses_sasl:
        return Security(tls)

    def begin(host: str) -> Begun:
        client = login_of(read, random_uuid().hex, host)
        return Begun(client, client.first())

    return Security(tls, read.mechanism, begin, waits=read.asks_others)


def _read(properties: Mapping[str, str], *, of_controllers: bool) -> ClientSecurity:
    if "process.roles" not in properties or "security.protocol" in properties:
        return read_client_security(properties)
    node = BrokerConfig.from_settings(properties).security
    return node.to_controllers if of_controllers or not node.inter_broker else node.to_brokers
