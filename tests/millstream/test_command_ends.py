"""Commands end without a traceback: by Ctrl-C, when nobody reads, with letters that do not fit."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.launch import program_command, program_environment
from stack.options import up_options
from stack.place import Place
from stack.plan import make_plan
from tests.lib.waiting import until

COMMANDS = [
    "",
    "version",
    "help ports",
    "completion bash",
    "up --help",
    "logs --help",
    "lab --help",
    "load --help",
    "topics --help",
    "broker --help",
    "broker start --help",
    "registry --help",
    "rest-proxy --help",
    "service orders --help",
    "mirror --help",
    "connect list --help",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_reads_a_text(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as output:
        done = run(command.split(), stdout=output)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_nobody_reads_the_logs_of_a_stack(tmp_path: Path) -> None:
    folder = logs_of_a_stack(tmp_path, "a line\n" * 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as output:
        done = run(["logs", "--lines", "20000"], stdout=output, MILLSTREAM_HOME=str(folder))
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_letters_that_the_output_cannot_show_are_escaped(tmp_path: Path) -> None:
    folder = logs_of_a_stack(tmp_path, "topic created name=Käse\n")
    narrow = {"MILLSTREAM_HOME": str(folder), "PYTHONIOENCODING": "ascii"}
    done = run(["logs"], **narrow)
    assert (done.returncode, done.stdout) == (0, "topic created name=K\\xe4se\n"), done.stderr


LOADING = [
    ("millstream", "up", "fcntl"),
    ("millstream", "lab failover", "rich"),
    ("broker", "start", "asyncio"),
    ("broker", "topics", "argparse"),
]


@pytest.mark.parametrize(("program", "arguments", "module"), LOADING)
def test_ctrl_c_ends_a_command_that_still_loads(
    program: str, arguments: str, module: str, tmp_path: Path
) -> None:
    """The command loads a module of this name that interrupts it, and would go on for long."""
    (tmp_path / f"{module}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    )
    ours = program_environment()["PYTHONPATH"]
    done = subprocess.run(
        program_command(program, *arguments.split()),
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), ours))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stderr == ""


def has_opened(pid: int, name: str) -> bool:
    """Tell whether a process has a file open; files that it closes meanwhile are none."""
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(each).endswith(name):
                return True
        except FileNotFoundError:
            continue
    return False


def test_ctrl_c_ends_up_while_another_up_starts_the_stack(tmp_path: Path) -> None:
    folder = stack_folder(tmp_path)
    with (folder / "up.lock").open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start_up(tmp_path)
        until(lambda: has_opened(process.pid, "up.lock"))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)
    assert (process.returncode, errors) == (130, "")


def test_ctrl_c_leaves_a_stack_that_starts_and_says_so(tmp_path: Path) -> None:
    folder = stack_folder(tmp_path)
    state = {"pid": os.getpid(), "parts": {"console": {"state": "ready"}}}
    (folder / "state.json").write_text(json.dumps(state))
    plan = make_plan(up_options(["--any-port"]), Place(folder))
    (folder / "plan.json").write_text(json.dumps(plan))
    with (folder / "lock").open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start_up(tmp_path)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("console is ready")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)
    assert (process.returncode, errors) == (
        130,
        "the stack continues to start; see millstream status, or stop it with millstream down\n",
    )


def start_up(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "millstream", "up"],
        env=os.environ | {"MILLSTREAM_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stack_folder(home: Path) -> Path:
    folder = home / "stacks/default"
    folder.mkdir(parents=True)
    return folder


SERVERS = [
    "registry",
    "service orders",
    "service search",
    "streams",
    "dashboard --store none.sqlite",
    "rest-proxy --override listeners=http://127.0.0.1:PORT",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", SERVERS)
def test_a_port_that_is_taken_is_named_without_a_stack_trace(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = command.replace("PORT", port).split()
        arguments += [] if "PORT" in command else ["--http-port", port]
        done = run(arguments, cwd=tmp_path)
    # A service logs its end before that.
    *_, line = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert (done.returncode, port in line, "ddress already in use" in line) == (1, True, True), line


@pytest.mark.parametrize("place", ["--http-port 99999", "--http-host nosuch.invalid"])
@pytest.mark.parametrize("command", SERVERS[:2])
@pytest.mark.slow
def test_an_address_that_cannot_be_is_named_without_a_stack_trace(command: str, place: str) -> None:
    done = run([*command.split(), *place.split()])
    *_, line = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert line.startswith(f"millstream {command}: cannot listen on "), line


def logs_of_a_stack(home: Path, text: str) -> Path:
    folder = stack_folder(home) / "logs"
    folder.mkdir()
    (folder / "broker-1.log").write_text(text, encoding="utf-8")
    return home


def run(
    arguments: list[str],
    stdout: object = subprocess.PIPE,
    cwd: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "millstream", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,  # type: ignore[arg-type]
        stderr=subprocess.PIPE,
        text=True,
        # With it, argparse ignores an output that is closed.
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        | variables,
        timeout=30,
        check=False,
    )
