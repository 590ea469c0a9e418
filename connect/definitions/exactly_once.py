"""Whether a source can do what its configuration asks for: exactly once, and its own transactions.

The connector's answers are asked for only where the configuration depends on them; the sentences
are Kafka Connect's (DistributedHerder).
"""

import logging
from collections.abc import Mapping

from connect.definitions.concealing import places
from millstream.connect.config.config_def import ConfigValue
from millstream.connect.connectors import (
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SourceConnector,
)

log = logging.getLogger(__name__)

SUPPORT = "exactly.once.support"
BOUNDARY = "transaction.boundary"
INTERVAL = "transaction.boundary.interval.ms"
_NOT_HERE = "This worker does not have exactly-once source support enabled."
_UNKNOWN = (
    "The connector does not implement the API required for preflight validation of exactly-once "
    "source support. Please consult the documentation for the connector to determine whether it "
    "supports exactly-once semantics, and then consider reconfiguring the connector to use the "
    'value "requested" for this property (which will disable this preflight check and allow the '
    "connector to be created)."
)
_UNSUPPORTED = (
    "The connector does not support exactly-once semantics with the provided configuration."
)
_NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given "
    "configuration. Please reconfigure it to use a different transaction boundary definition."
)


def check_exactly_once(
    connector: type[SourceConnector],
    config: Mapping[str, str],
    values: Mapping[str, ConfigValue],
    *,
    is_enabled: bool,
) -> None:
    """Add what is wrong; in a cluster `is_enabled` says what its workers do."""
    if _says(values[SUPPORT], "required"):
        if not is_enabled:
            values[SUPPORT].error_messages.append(_NOT_HERE)
        values[SUPPORT].error_messages += _support_errors(connector, config)
    if is_enabled and _says(values[BOUNDARY], "connector"):
        values[BOUNDARY].error_messages += _boundary_errors(connector, config)


def _says(value: ConfigValue, word: str) -> bool:
    return not value.error_messages and str(value.value).lower() == word


def _support_errors(connector: type[SourceConnector], config: Mapping[str, str]) -> list[str]:
    try:
        support = connector().exactly_once_support(config)
    # What a plugin raises is its own.
    except Exception as error:  # noqa: BLE001
        return [_unexpected(error)]
    if support is None:
        return [_UNKNOWN]
    return [] if support is ExactlyOnceSupport.SUPPORTED else [_UNSUPPORTED]


def _boundary_errors(connector: type[SourceConnector], config: Mapping[str, str]) -> list[str]:
    try:
        can_define = connector().can_define_transaction_boundaries(config)
    # As above.
    except Exception as error:  # noqa: BLE001
        return [_unexpected(error)]
    return [] if can_define is ConnectorTransactionBoundaries.SUPPORTED else [_NO_BOUNDARIES]


def _unexpected(error: Exception) -> str:
    # What it says may show a secret; in the answer that is concealed.
    what = "connector failed while its exactly-once support was asked for"
    log.error("%s\n%s", what, places(error))
    said = str(error).strip()
    reason = f": {said}" if said else "; please see the worker logs for more details."
    return f"An unexpected error occurred during validation{reason}"
