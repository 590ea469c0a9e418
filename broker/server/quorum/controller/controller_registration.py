"""Registers a controller with the cluster: ControllerRegistration (KIP-919).

Each start of a node registers again, with its listeners and the feature levels it supports: a level
is raised only when every voter has registered with it. The request is repeated until it succeeds; a
cluster works without it, so no part waits for it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.metadata.features import SUPPORTED_FEATURES
from broker.server.cluster.metadata_quorum import AskController
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)

log = logging.getLogger("millstream.controller.registration")

VERSION = 0
TIMEOUT_MS = 30_000
RETRY_MS = 1_000


class ControllerRegistration:
    """Registers the controller of this process."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: BrokerConfig,
        incarnation_id: bytes,
        ask: AskController,
    ) -> None:
        self._loop = loop
        self._config = config
        self._incarnation_id = incarnation_id
        self._ask = ask
        self._retry: asyncio.TimerHandle | None = None
        self._is_closed = False

    def start(self, ports: Mapping[str, int], host_name: Callable[[], str]) -> None:
        """Register with the current listeners; `host_name` is used for one without a host."""
        self._register(
            ControllerRegistrationRequest(
                controller_id=self._config.node_id,
                incarnation_id=self._incarnation_id,
                listeners=[
                    Listener(
                        name=endpoint.name,
                        host=endpoint.host or host_name(),
                        port=ports[endpoint.name],
                        security_protocol=self._config.security.protocol_of(endpoint.name).number,
                    )
                    for endpoint in self._config.controller_listeners
                ],
                features=[
                    Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
                    for name, (lowest, highest) in sorted(SUPPORTED_FEATURES.items())
                ],
            )
        )

    def _register(self, request: ControllerRegistrationRequest) -> None:
        def answered(response: Message) -> None:
            assert isinstance(response, ControllerRegistrationResponse), response
            code = ErrorCode(response.error_code)
            if code == ErrorCode.NONE or self._is_closed:
                return
            log.info("this controller is not registered yet: %s", code.name)
            self._retry = self._loop.call_later(RETRY_MS / 1000, self._register, request)

        self._ask(request, VERSION, answered, timeout_ms=TIMEOUT_MS)

    def close(self) -> None:
        """Stop all requests and timers."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
