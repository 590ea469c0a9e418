"""An issuer of OAuth tokens: its public keys in a file, and its tokens over HTTPS."""

import json
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from common.credentials.jaas import ALLOWED_URLS, OAUTHBEARER_MODULE, TOKEN_URL
from millstream.processes.settings_files import login_text
from millstream.testing.certificates import CertificateAuthority

AUDIENCE = "kafka"
_KEY = rsa.generate_private_key(65537, 2048)


class Issuer:
    """Owns a key, its description in a file, and after `serve` an HTTPS server."""

    def __init__(self, folder: Path, secrets: Mapping[str, str]) -> None:
        """`secrets` are those of the clients that get tokens, by user."""
        self._secrets = secrets
        self.asked: list[str] = []
        self.keys_file = folder / "keys.json"
        described = json.loads(RSAAlgorithm.to_jwk(_KEY.public_key()))
        self.keys_file.write_text(json.dumps({"keys": [{**described, "kid": "one", "use": "sig"}]}))

    def broker_settings(self) -> dict[str, str]:
        """Return what a broker needs to check the tokens."""
        return {
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": self.keys_file.as_uri(),
            ALLOWED_URLS: self.keys_file.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }

    def serve(self, authority: CertificateAuthority) -> None:
        """Begin to give tokens to clients that know their secret."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        shown = authority.issue("issuer")
        context.load_cert_chain(shown.certificate, shown.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def client_properties(self, user: str) -> dict[str, str]:
        """Return the settings of a client that asks here."""
        login = login_text(OAUTHBEARER_MODULE, clientId=user, clientSecret=self._secrets[user])
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": login,
            TOKEN_URL: f"https://localhost:{self._server.server_port}/token",
        }

    def _answer(self, authorization: str) -> tuple[int, dict[str, Any]]:
        user, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        self.asked.append(user)
        if not secret or self._secrets.get(user) != secret:
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": token(user, lifetime_seconds=3_600), "expires_in": 3_600}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = answer(self.headers["Authorization"])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *arguments: object) -> None: ...

        return Handler


def token(user: str, lifetime_seconds: int = 600, key: Any = _KEY, **claims: Any) -> str:
    """Return a token of the issuer, or of somebody else with a key."""
    now = int(time.time())
    content = {"sub": user, "iat": now, "exp": now + lifetime_seconds, "aud": AUDIENCE, **claims}
    return jwt.encode(content, key, algorithm="RS256", headers={"kid": "one"})
