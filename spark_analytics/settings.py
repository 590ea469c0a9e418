"""The settings that the job and the dashboard share."""

from dataclasses import dataclass

from common.http.settings import HttpSettings
from common.process.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings(HttpSettings):
    """The settings of both programs."""

    store: str = setting("build/analytics/serving.sqlite", "file of the serving store")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    neighbours: str = setting("", "servers to link to: name=http://..., with commas between")
    allowed_hosts: str = setting("", "names that clients reach this server by, with commas; *: all")
