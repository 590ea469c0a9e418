"""Processes that were forked: as those that were started, and none holds on to another's pipes."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.launch import program_environment
from millstream.processes.forked_process import CAN_FORK, LOST_STATUS, ForkedProcess, ForkServer
from tests.lib.connect_worker import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CAN_FORK, reason="only Linux forks"),
]
PROGRAM = """
import os, sys, json
if __name__ == "__main__":
    told = sys.argv[1:], os.environ.get("WORD"), os.getcwd(), "json" in sys.modules
    print(json.dumps([*told, os.getsid(0) != os.getpid()]), flush=True)
    line = sys.stdin.readline()
    print("an error", file=sys.stderr)
    sys.exit(int(line) if line else 7)
"""
WAIT_SECONDS = 20.0


class Starter:
    """Starts the program again and again, with one server."""

    def __init__(self, folder: Path) -> None:
        (folder / "forked_program.py").write_text(PROGRAM)
        self.server = ForkServer(("json",))
        self.errors = folder / "errors"
        self.environment = program_environment()
        self.environment["PYTHONPATH"] += f"{os.pathsep}{folder}"

    def start(
        self, *arguments: str, temporary_folder: str = "", **environment: str
    ) -> ForkedProcess:
        with self.errors.open("a") as errors:
            return self.server.start(
                "forked_program",
                arguments,
                self.environment | environment,
                errors,
                temporary_folder=temporary_folder,
            )


@pytest.fixture
def starter(tmp_path: Path) -> Starter:
    return Starter(tmp_path)


@pytest.fixture
def process(starter: Starter) -> Iterator[ForkedProcess]:
    started = starter.start()
    yield started
    started.kill()
    started.wait(WAIT_SECONDS)
    started.stdin.close()
    started.stdout.close()


def end(process: ForkedProcess) -> int:
    process.stdin.close()
    status = process.wait(WAIT_SECONDS)
    process.stdout.close()
    return status


def test_it_has_the_arguments_the_environment_the_folder_and_what_was_loaded(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = starter.start("a", "b", WORD="one")
    monkeypatch.chdir(tmp_path)
    second = starter.start(WORD="two")
    assert (
        first.stdout.readline()
        == f'[["a", "b"], "one", "{Path(__file__).parents[2]}", true, true]\n'
    )
    assert second.stdout.readline() == f'[[], "two", "{tmp_path}", true, true]\n'
    assert end(first) == end(second) == 7
    assert starter.errors.read_text() == 2 * "an error\n"


def test_it_is_called_by_its_command(starter: Starter) -> None:
    process = starter.start("word", "another", WORD="one")
    process.stdout.readline()
    command = Path(f"/proc/{process.pid}/cmdline").read_text()
    assert command.rstrip("\0") == "python -m forked_program word another"
    end(process)


def test_it_starts_with_an_argument_that_is_not_utf_8(starter: Starter) -> None:
    process = starter.start(os.fsdecode(b"K\xe4se"))
    assert process.stdout.readline().startswith('[["K\\udce4se"]')
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert command.rstrip(b"\0") == b"python -m forked_program K?se"
    end(process)


def test_its_status_is_what_it_ended_with(process: ForkedProcess) -> None:
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.stdin.write("3\n")
    process.stdin.flush()
    assert process.wait(WAIT_SECONDS) == 3
    assert process.poll() == process.wait() == process.returncode == 3
    process.kill()  # Too late, and no harm.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_that_ends_it_is_its_status(process: ForkedProcess, number: int) -> None:
    process.stdout.readline()
    process.send_signal(number)
    assert process.wait(WAIT_SECONDS) == -number


def test_to_stop_one_again_and_again_while_it_ends_is_no_error(starter: Starter) -> None:
    """The system knows that it has ended before this process does."""
    for process in [starter.start() for _ in range(5)]:
        process.stdout.readline()
        while process.poll() is None:
            process.kill()
        assert end(process) == -signal.SIGKILL


def test_a_frozen_one_has_not_ended(process: ForkedProcess) -> None:
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.kill()
    assert process.wait(WAIT_SECONDS) == -signal.SIGKILL


def test_the_end_of_its_input_reaches_it_though_others_were_forked_after_it(
    starter: Starter,
) -> None:
    first, *others = [starter.start() for _ in range(3)]
    assert end(first) == 7
    assert [other.poll() for other in others] == [None, None]
    assert [end(other) for other in others] == [7, 7]


def test_all_end_with_the_process_that_started_them(starter: Starter) -> None:
    """Their inputs end; and the server ends, since its client is gone."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from tests.millstream.test_forked_process import Starter\n"
        "starter = Starter(Path(sys.argv[1]))\n"
        "pids = [starter.start().pid for _ in range(2)]\n"
        "print(*pids, starter.server._server.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, str(starter.errors.parent)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    for pid in map(int, done.stdout.split()):
        wait_for_end(pid)


def test_a_temporary_folder_is_kept_until_the_client_ends(starter: Starter, tmp_path: Path) -> None:
    """The server ends first when its client was interrupted."""
    made = tmp_path / "made"
    made.mkdir()
    code = (
        "import os, sys; from pathlib import Path\n"
        "from tests.millstream.test_forked_process import Starter\n"
        "starter = Starter(Path(sys.argv[1]))\n"
        "process = starter.start(temporary_folder=sys.argv[2])\n"
        "starter.server._jobs.close()\n"
        "starter.server._server.wait()\n"
        "print(process.pid, flush=True)\n"
        "sys.stdin.read()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(made)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        with os.fdopen(os.pidfd_open(pid)) as ended:
            assert not select.select([ended], [], [], 0.3)[0]
            assert made.exists()
            client.stdin.close()
            assert select.select([ended], [], [], WAIT_SECONDS)[0]
    eventually(lambda: not made.exists())


def test_a_current_directory_that_is_gone_is_named(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError, match=r"^the current directory does not exist$"):
        starter.start()


def wait_for_end(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(descriptor) as ended:
        assert select.select([ended], [], [], WAIT_SECONDS)[0], pid


def test_a_server_that_was_killed_is_replaced_and_what_it_had_started_goes_on(
    starter: Starter,
) -> None:
    process = starter.start()
    process.stdout.readline()
    assert starter.server._server is not None
    jobs = starter.server._jobs
    starter.server._server.kill()
    starter.server._server.wait()
    assert end(process) == LOST_STATUS
    assert end(starter.start()) == 7
    assert jobs is not None
    assert jobs.fileno() == -1  # The socket to the server that has ended is closed.


def test_a_program_loaded_ahead_runs_anew_without_a_warning(starter: Starter) -> None:
    starter.server = ForkServer(("millstream.__main__",))
    with starter.errors.open("a") as errors:
        process = starter.server.start("millstream", ["version"], starter.environment, errors)
    with process.stdin, process.stdout:
        assert process.stdout.read().startswith("millstream ")
    assert process.wait(WAIT_SECONDS) == 0
    assert starter.errors.read_text() == ""


def test_a_module_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    server = ForkServer(("no_such_module",))
    with (tmp_path / "errors").open("a") as errors, pytest.raises(ChildProcessError):
        server.start("json", (), program_environment(), errors)


def test_who_is_interrupted_gets_no_answer_to_an_earlier_question(
    starter: Starter, tmp_path: Path
) -> None:
    (tmp_path / "slow_module.py").write_text("import time; time.sleep(0.5)")
    starter.server = ForkServer(("slow_module",))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            starter.start("first")
    finally:
        signal.signal(signal.SIGALRM, before)
    process = starter.start("second")
    assert "second" in process.stdout.readline()
    assert (
        Path(f"/proc/{process.pid}/cmdline")
        .read_text()
        .startswith("python -m forked_program second")
    )
    assert end(process) == 7
