"""Credentials for Faust's own clients: aiokafka's settings in Faust's types."""

from faust.auth import Credentials, SASLCredentials, SSLCredentials

from millrace.security.access import KafkaAccess


def credentials_of(kafka: KafkaAccess) -> Credentials | None:
    """Return Faust's credentials for a cluster; None for a cluster without authentication."""
    told = kafka.aiokafka()
    if "sasl_mechanism" in told:
        return SASLCredentials(
            username=told["sasl_plain_username"],
            password=told["sasl_plain_password"],
            ssl_context=told.get("ssl_context"),
            mechanism=told["sasl_mechanism"],
        )
    if "ssl_context" in told:
        return SSLCredentials(told["ssl_context"])
    return None
