"""A real S3 server (SeaweedFS), in a folder that is removed with it.

The variable `MILLSTREAM_TEST_S3` names another server, as http://key:secret@host:port.
"""

import http.client
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from millstream.processes.cluster_layout import free_ports

_PROGRAM = Path(sysconfig.get_path("scripts"), "weed")
_LISTENERS = ("s3", "master", "volume", "filer")
_START_SECONDS = 60


class S3(NamedTuple):
    """The address of a server, and the credentials."""

    host: str
    key: str
    secret: str


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server until the block ends; skip the test if no server is available."""
    if "MILLSTREAM_TEST_S3" in os.environ:
        url = urlsplit(os.environ["MILLSTREAM_TEST_S3"])
        yield S3(f"{url.hostname}:{url.port}", str(url.username), str(url.password))
        return
    if not _PROGRAM.exists():
        pytest.skip("no server that speaks S3: SeaweedFS is installed on Linux only")
    free = free_ports()  # One iterator, which gives no port twice.
    ports = dict(zip(_LISTENERS, islice(free, len(_LISTENERS)), strict=True))
    inner_ports = dict(zip(_LISTENERS, islice(free, len(_LISTENERS)), strict=True))
    found = S3(f"127.0.0.1:{ports['s3']}", "test-key", "test-secret")
    with tempfile.TemporaryDirectory(prefix="millstream-s3-") as folder:
        process = subprocess.Popen(
            _command(Path(folder), found, ports, inner_ports),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(ports, process)
            yield found
        finally:
            process.kill()
            process.wait()
            for port in (*ports.values(), *inner_ports.values()):
                for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink()


def _command(
    folder: Path, server: S3, ports: dict[str, int], inner_ports: dict[str, int]
) -> list[str]:
    identity = {
        "name": "test",
        "credentials": [{"accessKey": server.key, "secretKey": server.secret}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    identities = folder / "identities.json"
    identities.write_text(json.dumps({"identities": [identity]}))
    command = [str(_PROGRAM), f"-logdir={folder}", "server", f"-dir={folder}"]
    command += ["-s3", f"-s3.config={identities}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-{name}.port={port}" for name, port in ports.items()]
    command += [f"-{name}.port.grpc={port}" for name, port in inner_ports.items()]
    # Each bucket has its own volumes. Parts that are not needed do not listen.
    command += ["-volume.max=200", "-master.volumeSizeLimitMB=64"]
    return [*command, "-s3.port.iceberg=0", "-s3.port.lance=0"]


def _wait_for(ports: dict[str, int], process: subprocess.Popen[bytes]) -> None:
    """Wait until the server accepts a file."""
    deadline = time.monotonic() + _START_SECONDS
    while not (
        _answer(ports["master"], "/dir/assign") == http.client.OK
        and _answer(ports["s3"], "/") == http.client.FORBIDDEN
    ):
        assert process.poll() is None, "the server has stopped"
        assert time.monotonic() < deadline, "the server does not start"
        time.sleep(0.1)


def _answer(port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
