"""Failures of authentication."""


class AuthenticationFailed(Exception):  # noqa: N818 - Kafka's AuthenticationException names the state
    """The client did not prove who it is. The message goes to the log, never to the client."""
