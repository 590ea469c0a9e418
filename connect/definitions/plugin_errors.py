"""What a connector's own code raises while its configuration is looked at, without its secrets."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from connect.definitions.concealing import Concealing
from connect.herder.names import RefusalError
from millstream.connect.errors import ConfigException, ConnectException

log = logging.getLogger(__name__)


@contextmanager
def concealed(concealing: Concealing, what: str) -> Iterator[None]:
    """Raise RefusalError, ConfigException and ConnectException with no value in what they say.

    Any other error is one of the plugin's code. It is logged with its trace, in which no value is
    seen either, and raised as a ConnectException; `what` says what has failed.
    """
    try:
        yield
    except RefusalError as error:
        raise RefusalError(error.status, concealing.text(str(error))) from None
    except ConfigException as error:
        raise ConfigException(concealing.text(str(error))) from None
    except ConnectException as error:
        raise ConnectException(concealing.text(str(error))) from None
    # What a plugin raises is its own.
    except Exception as error:  # noqa: BLE001
        log.error("%s failed\n%s", what, concealing.trace(error))
        raise ConnectException(f"{what} failed: {concealing.error(error)}") from None
