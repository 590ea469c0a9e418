"""A user at a terminal is told how far a long run is; a script is told nothing."""

import io
from pathlib import Path

import pytest

from broker.cli.admin_settings import admin_settings
from broker.cli.dump_log import main as dump_log
from broker.cli.waiting import Progress
from broker.log.config import LogConfig
from broker.log.storage import RealStorage
from broker.records.build import build_batch
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from millstream.testing import LocalBroker
from tests.lib.logs import NOW_MS, open_log


class Screen(io.StringIO):
    """Standard output or error, which is a terminal or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class SteppingClock(SystemClock):
    """A second passes each time that somebody looks."""

    def __init__(self) -> None:
        self._ms = 0

    def now_ms(self) -> int:
        self._ms += 1_000
        return self._ms


def error_screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Return the standard error of this test, a terminal. (A fixture's would be captured.)"""
    screen = Screen(is_terminal=True)
    monkeypatch.setattr("sys.stderr", screen)
    return screen


def test_lines_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = error_screen(monkeypatch)
    progress = Progress(SteppingClock())
    for number in range(1, 40):
        progress.tell(lambda number=number: f"{number} of 40 files")  # type: ignore[misc]
    assert errors.getvalue().splitlines() == [
        "2 of 40 files after 2 s",
        "4 of 40 files after 4 s",
        "8 of 40 files after 8 s",
        "16 of 40 files after 16 s",
        "32 of 40 files after 32 s",
    ]


@pytest.mark.parametrize(
    ("is_terminal", "prints_results", "is_shown"),
    [(True, False, True), (True, True, False), (False, True, True)],
)
def test_results_on_a_terminal_are_progress_enough(
    is_terminal: bool,
    prints_results: bool,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = error_screen(monkeypatch)
    monkeypatch.setattr("sys.stdout", Screen(is_terminal=is_terminal))
    progress = Progress(SteppingClock(), prints_results=prints_results)
    for _ in range(3):
        progress.tell(lambda: "some")
    assert bool(errors.getvalue()) is is_shown


def test_a_script_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(is_terminal=False)
    monkeypatch.setattr("sys.stderr", screen)
    progress = Progress(SteppingClock())
    for _ in range(3):
        progress.tell(lambda: "some")
    assert screen.getvalue() == ""


def test_a_large_segment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    errors = error_screen(monkeypatch)
    log = open_log(RealStorage(), LogConfig(index_interval_bytes=0), directory=f"{tmp_path}/t-0")
    for _ in range(50):
        batch = build_batch([(None, b"value", (), NOW_MS)])
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    log.close()
    monkeypatch.setattr("broker.cli.waiting.SILENT_MS", 0)
    base = tmp_path / "t-0" / f"{0:020d}"
    for suffix in (".log", ".index", ".timeindex"):
        size = base.with_suffix(suffix).stat().st_size
        errors.truncate(0)
        assert dump_log(["--verify-index-only", "--files", str(base.with_suffix(suffix))]) == 0
        line = errors.getvalue().splitlines()[0].lstrip("\0")
        assert line.startswith(f"{base.name}{suffix}: "), line
        assert f" of {size} bytes read after " in line
    assert "bytes read" not in capsys.readouterr().out


@pytest.mark.slow
def test_many_short_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = error_screen(monkeypatch)
    with LocalBroker() as broker:
        monkeypatch.setattr("broker.cli.waiting.SILENT_MS", 50)
        with AdminClient(admin_settings(broker.bootstrap_servers)) as client:
            for _ in range(200):
                client.nodes()
    assert " requests answered, the last was Metadata, after " in errors.getvalue()
