"""278 REST calls, right and wrong, to Apache Kafka Connect's worker and to ours.

Both run standalone, each on a broker of its own, and are asked the same at the same time. What
they answer is the same, but for the few differences that tests/lib/connect_differences.py explains.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.testing import LocalBroker
from tests.lib.apache_connect import ApacheWorker, connect_libs
from tests.lib.connect_calls import CALLS, Answer, Call, send_all
from tests.lib.connect_differences import DIFFERENCES, explained
from tests.lib.connect_worker import ConnectWorker

pytestmark = pytest.mark.interop

Asked = tuple[Call, Answer, Answer]
Made = Callable[[Path, dict[str, str]], ConnectWorker]


@contextmanager
def worker(make: Made, folder: Path) -> Iterator[ConnectWorker]:
    folder.mkdir()
    with LocalBroker() as broker:
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(folder / "offsets"),
        }
        one = make(folder, told)
        try:
            yield one.start()
        finally:
            one.kill()


def answers(make: Made, folder: Path) -> list[Answer]:
    with worker(make, folder) as one:
        said = send_all(f"http://{one.worker_id}", folder)
        # Whatever came, it lives.
        assert one.call("GET", "/health").status == 200
        return said


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    libs = connect_libs()
    folder = tmp_path_factory.mktemp("workers")
    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(
            answers, lambda at, told: ApacheWorker(at, told, libs, "apaches"), folder / "apaches"
        )
        ours = pool.submit(answers, ConnectWorker, folder / "ours")
        return list(zip(CALLS, theirs.result(), ours.result(), strict=True))


def test_what_apaches_worker_answers_ours_answers(asked: list[Asked]) -> None:
    different = [
        (call.name, theirs, ours)
        for call, theirs, ours in asked
        if theirs != ours and not explained(call, theirs, ours)
    ]

    assert not different, (len(different), different[:3])
    assert sum(theirs == ours for _, theirs, ours in asked) >= 195


def test_every_difference_is_still_there(asked: list[Asked]) -> None:
    found = {explained(*each) for each in asked if each[1] != each[2]}

    assert found == {each.reason for each in DIFFERENCES}


def test_no_answer_of_ours_is_a_mistake_of_its_own(asked: list[Asked]) -> None:
    assert [call.name for call, theirs, ours in asked if ours.status >= 500 > theirs.status] == []
