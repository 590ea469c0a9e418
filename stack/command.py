"""The commands `up`, `status`, `down`, `logs`, and `stop` and `start` of one part."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from millstream.launch import program_command, program_environment
from millstream.processes.switchboard import READY, STOPPED, write_whole
from stack.options import (
    READY_SECONDS,
    UpOptions,
    down_parser,
    logs_parser,
    start_parser,
    status_parser,
    stop_parser,
    up_options,
)
from stack.place import Place, place_of
from stack.plan import (
    Plan,
    PlanError,
    environment_file,
    make_plan,
    moved_ports,
    refuse_other_options,
    remember_cluster,
    security_folder,
)
from stack.security import keep_private, make_security
from stack.shown import as_json, exports, table

NOT_RUNNING = 3
_POLL_SECONDS = 0.05
_STOP_SECONDS = 40.0
_KILL_SECONDS = 5.0
_CONTINUES = (
    "the stack continues to start; see millstream status, or stop it with millstream down\n"
)


def up(arguments: Sequence[str]) -> int:
    """Start a stack, or use the running one; return when it is ready."""
    options = up_options(arguments)
    try:
        place = place_of(options.name, os.environ)
        return _start_and_await(options, place)
    except (PlanError, ValueError, OSError) as error:
        sys.stderr.write(f"millstream up: {error}\n")
        return 1


def _start_and_await(options: UpOptions, place: Place) -> int:
    try:
        with place.starting():
            is_new = not place.is_taken()
            if is_new:
                _start(options, place)
            else:
                refuse_other_options(options, place.plan())
        return _await_ready(place, options, is_new=is_new)
    except KeyboardInterrupt:
        if place.is_taken():
            sys.stderr.write(_CONTINUES)
        raise


def _start(options: UpOptions, place: Place) -> None:
    """Start the process that runs the stack. Raise PlanError, OSError."""
    plan = make_plan(options, place)
    for line in moved_ports(options, plan):
        sys.stderr.write(f"{line}\n")
    place.state_file.unlink(missing_ok=True)
    if options.is_ephemeral:
        shutil.rmtree(plan["data_folder"], ignore_errors=True)
    folder = security_folder(plan)
    if folder is not None:
        keep_private(place.folder, Path(plan["data_folder"]))
        make_security(folder)
    place.log_folder.mkdir(parents=True, exist_ok=True)
    place.write(place.plan_file, plan)
    remember_cluster(plan)
    write_whole(place.env_file, environment_file(plan))
    with (place.log_folder / "stack.log").open("ab") as log:
        process = subprocess.Popen(
            program_command("stack", str(place.folder)),
            env=program_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C ends this command, not the stack.
            start_new_session=True,
        )
    while not place.is_taken() and process.poll() is None:
        time.sleep(_POLL_SECONDS)


def _await_ready(place: Place, options: UpOptions, *, is_new: bool) -> int:
    deadline = time.monotonic() + options.wait_seconds
    began = time.monotonic()
    seen: set[str] = set()
    state: dict[str, Any] = {}
    while not state.get("is_ready"):
        state = place.state()
        if error := state.get("error"):
            raise PlanError(f"{error}\nMore with: millstream logs --name {place.name}")
        _tell_progress(state, seen, time.monotonic() - began)
        if time.monotonic() >= deadline:
            _show(place, state, options)
            raise PlanError(
                f"not ready after {options.wait_seconds} s; the stack is still starting"
            )
        # The process of the stack has a moment to take the lock.
        if not place.is_taken() and time.monotonic() - began > _KILL_SECONDS:
            raise PlanError(f"the stack has ended: see {place.log_folder / 'stack.log'}")
        if not state.get("is_ready"):
            time.sleep(_POLL_SECONDS)
    if not is_new:
        sys.stderr.write(f"the stack runs already (process {state['pid']})\n")
    _show(place, state, options)
    return 0


def _tell_progress(state: dict[str, Any], seen: set[str], seconds: float) -> None:
    """Print the parts that have become ready since the last call."""
    for name, part in state.get("parts", {}).items():
        if part.get("state") == READY and name not in seen:
            seen.add(name)
            sys.stderr.write(f"{name} is ready after {seconds:.1f} s\n")
    doing = state.get("doing")
    if doing and doing not in seen:
        seen.add(doing)
        sys.stderr.write(f"{doing}\n")


def _show(place: Place, state: dict[str, Any], options: UpOptions) -> None:
    plan = place.plan()
    if options.is_json:
        sys.stdout.write(json.dumps(as_json(plan, state), indent=2) + "\n")
        return
    sys.stdout.write(f"\n{table(plan, state)}\n\n{exports(plan)}\n")


def status(arguments: Sequence[str]) -> int:
    """Show a stack; return 0 if it is ready, 1 if not, 3 if there is none."""
    told = status_parser().parse_args(arguments)
    place = _named(told.name)
    if place is None or not place.is_taken():
        if told.json:
            sys.stdout.write(json.dumps({"is_ready": False, "addresses": {}}) + "\n")
        else:
            sys.stderr.write("millstream status: no stack runs; start one with: millstream up\n")
        return NOT_RUNNING
    state, plan = place.state(), place.plan()
    if told.json:
        sys.stdout.write(json.dumps(as_json(plan, state), indent=2) + "\n")
    else:
        data = "ephemeral" if plan["is_ephemeral"] else plan["data_folder"]
        sys.stdout.write(f"{table(plan, state)}\n\nprocess {state.get('pid')}, data: {data}\n")
    return 0 if state.get("is_ready") else 1


def down(arguments: Sequence[str]) -> int:
    """Stop a stack and wait for its end; succeed also if no stack runs."""
    told = down_parser().parse_args(arguments)
    place = _named(told.name)
    if place is None:
        sys.stderr.write("no stack runs\n")
        return 0
    if place.is_taken():
        _stop(place)
        sys.stderr.write("stopped\n")
    else:
        sys.stderr.write("no stack runs\n")
    if told.delete_data:
        _delete(place)
    return 0


def _stop(place: Place) -> None:
    pid = place.state().get("pid")
    began = time.monotonic()
    has_said = False
    signals = [(_STOP_SECONDS, signal.SIGTERM), (_KILL_SECONDS, signal.SIGKILL)]
    for seconds, number in signals:
        deadline = time.monotonic() + seconds
        if isinstance(pid, int):
            _send(pid, number)
        while place.is_taken() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            if not has_said and time.monotonic() - began > 2:
                has_said = True
                sys.stderr.write("stopping: brokers hand over and write what they have\n")
            pid = place.state().get("pid", pid)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        # A process that is stopped (SIGSTOP) would not receive SIGTERM.
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _delete(place: Place) -> None:
    try:
        data = Path(place.plan()["data_folder"])
    except (OSError, ValueError, KeyError):
        return
    if (data / "cluster").exists():
        for each in [*data.glob("broker-*"), data / "cluster"]:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        sys.stderr.write(f"deleted the data in {data}\n")


def stop(arguments: Sequence[str]) -> int:
    """Stop one part of the running stack; return when it has ended."""
    told = stop_parser().parse_args(arguments)
    return _change_part("stop", told.name, told.part, is_stopped=True, is_killed=told.kill)


def start(arguments: Sequence[str]) -> int:
    """Start a part that was stopped; return when it is ready."""
    told = start_parser().parse_args(arguments)
    return _change_part("start", told.name, told.part, is_stopped=False)


def _change_part(
    command: str, name: str, part: str, *, is_stopped: bool, is_killed: bool = False
) -> int:
    place = _named(name)
    if place is None or not place.is_taken():
        sys.stderr.write(f"millstream {command}: no stack runs\n")
        return NOT_RUNNING
    parts = list(place.state().get("parts", {}))
    if part not in parts:
        there = ", ".join(parts)
        sys.stderr.write(f"millstream {command}: no part {part!r}; there are {there}\n")
        return 1
    with place.starting():
        others = {each: killed for each, killed in place.stopped().items() if each != part}
        place.write_stopped({**others, part: is_killed} if is_stopped else others)
    return _await_part(command, place, part, STOPPED if is_stopped else READY)


def _await_part(command: str, place: Place, part: str, wanted: str) -> int:
    """Wait until a part is in a state and, if that is `stopped`, its process has ended."""
    deadline = time.monotonic() + READY_SECONDS
    while place.is_taken() and time.monotonic() < deadline:
        found = place.state().get("parts", {}).get(part, {})
        if found.get("state") == wanted and (wanted == READY or found.get("pid") is None):
            sys.stderr.write(f"{part} is {wanted}\n")
            return 0
        time.sleep(_POLL_SECONDS)
    sys.stderr.write(f"millstream {command}: {part} is not {wanted} in time\n")
    return 1


def logs(arguments: Sequence[str]) -> int:
    """Print the last lines of the logs, and follow them with --follow."""
    told = logs_parser().parse_args(arguments)
    place = _named(told.name)
    files = [] if place is None else sorted(place.log_folder.glob("*.log"))
    names = [each.stem for each in files]
    if told.part is not None:
        files = [each for each in files if each.stem in (told.part, f"{told.part}-1")]
    if not files:
        there = ", ".join(names) or "none"
        sys.stderr.write(
            f"millstream logs: no log of {told.part or 'a stack'}; there are {there}\n"
        )
        return 1
    width = max(len(each.stem) for each in files) if len(files) > 1 else 0
    positions = {each: _print_end(each, told.lines, width) for each in files}
    while told.follow:
        time.sleep(0.2)
        positions = {each: _print_from(each, at, width) for each, at in positions.items()}
    return 0


def _print_end(file: Path, count: int, width: int) -> int:
    text = file.read_bytes()
    lines = text.decode(errors="replace").splitlines()
    _print(file, lines[-count:] if count > 0 else [], width)
    return len(text)


def _print_from(file: Path, at: int, width: int) -> int:
    with file.open("rb") as opened:
        # A restarted stack begins a new log.
        opened.seek(at if at <= file.stat().st_size else 0)
        found = opened.read()
        end = opened.tell()
    whole = found[: found.rfind(b"\n") + 1]
    _print(file, whole.decode(errors="replace").splitlines(), width)
    return end - (len(found) - len(whole))


def _print(file: Path, lines: Sequence[str], width: int) -> None:
    prefix = f"{file.stem.ljust(width)} | " if width else ""
    sys.stdout.write("".join(f"{prefix}{line}\n" for line in lines))
    sys.stdout.flush()


def _named(name: str) -> Place | None:
    """Return the stack with a name; without a name the only running one, else the default."""
    from stack.place import places

    if name:
        try:
            return place_of(name, os.environ)
        except ValueError as error:
            sys.stderr.write(f"millstream: {error}\n")
            return None
    known = places(os.environ)
    running = [each for each in known if each.is_taken()]
    if len(running) == 1:
        return running[0]
    return next((each for each in known if each.name == "default"), None)


__all__ = ["Plan", "down", "logs", "start", "status", "stop", "up"]
