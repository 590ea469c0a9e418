"""How a worker's REST interface is served, in Kafka Connect's settings.

    listeners=https://0.0.0.0:8083
    listeners.https.ssl.keystore.location=certificates/worker.pem

What begins with `listeners.https.` counts alone; where nothing does, the worker's own `ssl.`
settings count, as in Kafka Connect.
"""

from typing import Final
from urllib.parse import urlsplit

from common.credentials.translation import ClientSettingsError
from common.http.security import OPEN, SERVER_SETTINGS, HttpSecurity, of_settings
from connect.worker.client_settings import with_prefix
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConfigException

_PREFIX: Final = "listeners.https."


def rest_security(settings: WorkerSettings) -> HttpSecurity:
    """Return the security of the listener. Raises ConfigException."""
    listener = ",".join(settings["listeners"])
    if urlsplit(listener).scheme.lower() != "https":
        return OPEN
    own = with_prefix(settings.written, _PREFIX) or {
        name: value for name, value in settings.written.items() if name in SERVER_SETTINGS
    }
    try:
        found = of_settings({name: value or "" for name, value in own.items()}, "listeners.https")
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None
    if not found.has_tls:
        raise ConfigException(f"listeners={listener} needs {_PREFIX}ssl.keystore.location")
    return found
