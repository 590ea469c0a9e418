"""The control of a broker that other machines reach, as one in a container is: with a password.

The container itself is tried by `make test-containers`.
"""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from itertools import islice
from pathlib import Path

import pytest

from millstream.processes.cluster_layout import free_ports
from millstream.testing import RunningBrokers
from millstream.testing.broker_control import ControlError
from millstream.testing.containers import start_files
from tests.lib.waiting import until

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.slow


def test_the_files_of_a_container_start_a_broker_whose_control_has_a_password(
    tmp_path: Path,
) -> None:
    kafka, http = islice(free_ports(), 2)
    (tmp_path / "tmp").mkdir()
    files = start_files(f"PLAINTEXT://127.0.0.1:{kafka}", "p:@ss", root=str(tmp_path))
    for name, text in files.items():
        Path(name).write_text(text)
    program = tmp_path / "millstream"
    program.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m millstream "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{kafka}",
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        "KAFKA_HTTP_LISTENER": f"127.0.0.1:{http}",
        "KAFKA_HTTP_CONFIG": list(files)[1],
    }
    with subprocess.Popen(["sh", list(files)[-1]], env=environment) as broker:
        try:
            until(lambda: _is_ready(f"http://127.0.0.1:{http}/health/ready"))
            with RunningBrokers([f"http://test:p%3A%40ss@127.0.0.1:{http}"]) as allowed:
                assert allowed.requests.list() == []
            with pytest.raises(ControlError, match="Unauthorized"):
                RunningBrokers([f"http://127.0.0.1:{http}"]).requests.list()
        finally:
            broker.terminate()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
