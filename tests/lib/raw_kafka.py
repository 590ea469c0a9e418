"""A socket to a broker, for bytes that no client sends, with Millstream's codec for valid ones."""

import socket
import struct
from types import TracebackType
from typing import Self

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


class RawConnection:
    """One TCP connection to a broker."""

    def __init__(self, bootstrap: str, timeout_seconds: float = 10.0) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_seconds)
        self._correlation_id = 0

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, content: bytes) -> None:
        self.send(struct.pack(">i", len(content)) + content)

    def receive_frame(self) -> bytes:
        """Return the next frame without its size; raise ConnectionError at the end."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Wait until the broker closes the connection; it must not send anything before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, api_key: ApiKey, version: int, request: Message) -> Message:
        """Send one request and return its response."""
        self._correlation_id += 1
        self.send(encode_request(api_key, version, self._correlation_id, "raw-connection", request))
        correlation_id, response = decode_response(api_key, version, self.receive_frame())
        assert correlation_id == self._correlation_id
        return response

    def find_coordinator(self, group_id: str) -> None:
        """Find a group's coordinator, as every client does before other requests for the group."""
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        response = self.ask(ApiKey.FIND_COORDINATOR, 4, request)
        assert isinstance(response, FindCoordinatorResponse)
        assert response.coordinators[0].error_code == ErrorCode.NONE

    def _exactly(self, count: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < count:
            chunk = self.socket.recv(count - len(chunks))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            chunks += chunk
        return bytes(chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()
