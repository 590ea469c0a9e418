"""The installation beside the running demo: with commands that print and do what pip does."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest

from demo.pipeline import installing
from demo.pipeline.installing import how_far, install
from tests.lib.quorum_nodes import until

PRINTED = """Collecting numpy==2.4.6
  Downloading numpy-2.4.6-cp311.whl (16.9 MB)
Collecting pyspark==4.2.1 (from -r requirements/demo.txt (line 9))
  Downloading pyspark-4.2.1.tar.gz (450.3 MB)
"""


def python(program: str) -> str:
    return shlex.join([sys.executable, "-c", program])


def run(command: str, folder: Path) -> tuple[bool, list[str]]:
    said: list[str] = []
    return asyncio.run(install(command, folder, said.append)), said


def test_it_is_said_how_much_of_the_last_download_has_come(tmp_path: Path) -> None:
    assert how_far("", tmp_path) == "0 packages found"
    (tmp_path / "pip-unpack-1").mkdir()
    (tmp_path / "pip-unpack-1" / "pyspark-4.2.1.tar.gz").write_bytes(bytes(12_000_000))
    assert how_far(PRINTED, tmp_path) == (
        "2 packages found, 12 MB of pyspark-4.2.1.tar.gz are here, of 450.3 MB"
    )
    assert "wheel" in how_far(f"{PRINTED}Building wheels for collected packages", tmp_path)
    assert "unpacked" in how_far(f"{PRINTED}Installing collected packages: numpy", tmp_path)


def test_what_was_downloaded_is_removed_and_the_output_is_kept(tmp_path: Path) -> None:
    program = "import os; open(os.environ['TMPDIR'] + '/x', 'w'); print('Collecting x')"
    is_done, said = run(python(program), tmp_path)
    assert is_done
    assert "are installed after" in said[-1]
    assert not (tmp_path / "install").exists()
    assert (tmp_path / "logs" / "install.log").read_text() == "Collecting x\n"


def test_a_failure_is_said_with_the_first_error_of_pip(tmp_path: Path) -> None:
    program = "print('ERROR: No matching distribution'); print('make: *** Error 1'); exit(1)"
    is_done, said = run(python(program), tmp_path)
    assert not is_done
    assert "cannot be installed: No matching distribution (" in said[-1]


def test_the_command_and_what_it_has_started_end_with_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_LOOK_SECONDS", 0.05)
    ids = tmp_path / "ids"
    child = f"import os, time; open({str(ids)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    said: list[str] = []

    async def cancel_in_the_middle() -> None:
        task = asyncio.ensure_future(install(python(program), tmp_path, said.append))
        await until(lambda: ids.exists() and ids.read_text() != "")
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: not Path(f"/proc/{ids.read_text()}").exists())
        assert task.cancelled()

    asyncio.run(cancel_in_the_middle())
    assert not (tmp_path / "install").exists()
