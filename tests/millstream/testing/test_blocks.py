"""The `with` blocks of `millstream.testing`: what they leave behind, and to whom they belong."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millstream.testing import BrokerFailedError, LocalBroker, LocalCluster

FORKING = """
import os, sys
from millstream.testing import LocalBroker, LocalCluster, LocalStack
with {made} as started:
    child = os.fork()
    if child == 0:
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    {use}
"""
TOPIC = 'started.create_topic("t"); started.create_topic("u")'
REGISTRY = (
    "import urllib.request; "
    'urllib.request.urlopen(started.programs["registry"].url + "/subjects").close()'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "use"),
    [
        ("LocalBroker()", TOPIC),
        ("LocalCluster(brokers=1)", TOPIC),
        ('LocalStack(parts=("registry",))', REGISTRY),
    ],
)
def test_a_process_that_is_forked_in_a_block_leaves_it_to_its_parent(made: str, use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING.format(made=made, use=use)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_broker_that_does_not_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for local in (LocalBroker(num_partition=3), LocalCluster(brokers=1, num_partition=3)):
        with pytest.raises(BrokerFailedError, match="did you mean"), local:
            pass
    assert [each for each in tmp_path.iterdir() if each.is_dir()] == []


@pytest.mark.slow
def test_a_broker_is_shown_with_its_address() -> None:
    broker = LocalBroker()
    assert repr(broker) == "<LocalBroker, not running>"
    with broker:
        assert repr(broker) == f"<LocalBroker {broker.bootstrap_servers}>"
        broker.kill()
        assert repr(broker) == "<LocalBroker, not running>"
    cluster = LocalCluster(brokers=3)
    assert repr(cluster) == "<LocalCluster, not running>"
