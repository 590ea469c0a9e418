"""A place of keys or certificates, as the settings name it."""

from typing import NamedTuple


class Store(NamedTuple):
    """Where keys or certificates are: a file, or PEM text in the settings themselves."""

    setting: str
    location: str
    pem: str
    password: str
