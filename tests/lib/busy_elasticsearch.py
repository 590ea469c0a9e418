"""A server that answers like a busy Elasticsearch, and stores the accepted documents.

It supports only the sink's requests. It can be stopped and restarted with the same address.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from millstream.processes.cluster_layout import free_ports


class BusyElasticsearch:
    """`refusals` are the statuses of bulk requests; "item" refuses every second document."""

    def __init__(self, refusals: list[int | str]) -> None:
        self.refusals = refusals
        self.documents: dict[str, Any] = {}
        self.bulks = 0
        self.authorizations: list[str | None] = []
        self._port = next(free_ports())
        self.url = f"http://127.0.0.1:{self._port}"
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            # Each request has its own connection, so none remains when the server stops.
            protocol_version = "HTTP/1.0"

            def do_PUT(self) -> None:
                outer.authorizations.append(self.headers.get("Authorization"))
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_bulk = self.path.endswith("_bulk")
                self._answer(*outer.bulk(body) if is_bulk else (200, {"acknowledged": True}))

            def _answer(self, status: int, body: Any) -> None:
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Type", "application/vnd.elasticsearch+json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def bulk(self, body: bytes) -> tuple[int, Any]:
        """Store documents, or refuse them as `refusals` says."""
        self.bulks += 1
        refusal = self.refusals.pop(0) if self.refusals else None
        if isinstance(refusal, int):
            return refusal, {
                "error": {"type": "es_rejected_execution_exception"},
                "status": refusal,
            }
        lines = [json.loads(line) for line in body.splitlines()]
        items = []
        for number, (header, document) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            if refusal == "item" and number % 2:
                error = {"type": "es_rejected_execution_exception", "reason": "queue is full"}
                items.append({"index": {"status": 429, "error": error}})
                continue
            self.documents[header["index"]["_id"]] = document
            items.append({"index": {"status": 201}})
        return 200, {"errors": refusal == "item", "items": items}
