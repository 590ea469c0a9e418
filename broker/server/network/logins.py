"""The client's side of SASL as the settings say, with the token of OAUTHBEARER if it needs one.

A token is read for each connection, so that whoever renews a file need tell nobody.
"""

from base64 import b64encode
from http.client import HTTPException
from urllib.parse import urlencode
from urllib.request import Request

from broker.config.oauth_config import OauthClientConfig
from broker.config.security_config import ClientSecurity
from broker.security.errors import AuthenticationFailed
from broker.security.jwt_claims import json_object
from broker.security.oauthbearer import MAX_TOKEN_LENGTH, InvalidToken
from broker.security.sasl_client import MechanismClient, OauthBearerClient, client_of
from broker.server.network.fetching import fetched


def login_of(security: ClientSecurity, nonce: str) -> MechanismClient:
    """Return the client's side of a mechanism. Raises AuthenticationFailed without a token."""
    if security.oauth is not None:
        return OauthBearerClient(read_token(security.oauth))
    return client_of(
        security.mechanism, security.user, security.password, nonce, is_token=security.is_token
    )


def read_token(config: OauthClientConfig) -> str:
    """Return a new token. Raises AuthenticationFailed, which names the place and no secret."""
    is_file = config.url.startswith("file:")
    try:
        answer = fetched(Request(config.url) if is_file else _request(config), config.truststore)
        token = answer.decode() if is_file else json_object(answer, "token").get("access_token")
    except (OSError, ValueError, HTTPException, InvalidToken) as error:
        raise AuthenticationFailed(f"no token from {config.url}: {error}") from error
    token = token.strip() if isinstance(token, str) else ""
    if not token or not token.isascii() or not token.isprintable() or len(token) > MAX_TOKEN_LENGTH:
        raise AuthenticationFailed(f"no token from {config.url}: its answer is none")
    return token


def _request(config: OauthClientConfig) -> Request:
    """Ask in the client's own name (RFC 6749, 4.4)."""
    fields = {"grant_type": "client_credentials"}
    if config.scope:
        fields["scope"] = config.scope
    login = b64encode(f"{config.client_id}:{config.client_secret}".encode()).decode()
    headers = {
        "Authorization": f"Basic {login}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return Request(config.url, data=urlencode(fields).encode(), headers=headers, method="POST")
