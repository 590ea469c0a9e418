"""Credentials for Faust's own clients: aiokafka's settings in Faust's types."""

from faust.auth import (
    Credentials,
    GSSAPICredentials,
    OAuthCredentials,
    SASLCredentials,
    SSLCredentials,
)

from common.credentials.access import KafkaAccess


def credentials_of(kafka: KafkaAccess) -> Credentials | None:
    """Return Faust's credentials for a cluster; None for a cluster without authentication."""
    told = kafka.aiokafka()
    context = told.get("ssl_context")
    if "sasl_oauth_token_provider" in told:
        return OAuthCredentials(oauth_cb=told["sasl_oauth_token_provider"], ssl_context=context)
    if "sasl_kerberos_service_name" in told:
        return GSSAPICredentials(
            kerberos_service_name=told["sasl_kerberos_service_name"],
            ssl_context=context,
            mechanism=told["sasl_mechanism"],
        )
    if "sasl_mechanism" in told:
        return SASLCredentials(
            username=told["sasl_plain_username"],
            password=told["sasl_plain_password"],
            ssl_context=context,
            mechanism=told["sasl_mechanism"],
        )
    if context is not None:
        return SSLCredentials(context)
    return None
