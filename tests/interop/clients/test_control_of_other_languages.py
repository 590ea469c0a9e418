"""The files for Java, Go and TypeScript in millstream/testing/clients, with a client of each."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.lib.java import JAVA, QUICK_JAVA_OPTIONS, fetched_libs, java
from tests.lib.other_languages import (
    GO,
    TYPESCRIPT,
    compile_typescript,
    needed,
    node_modules,
)

FILES = Path(__file__).parents[3] / "millstream" / "testing" / "clients"
SECONDS = 180

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the environment in which `millstream` is that of this checkout.

    CONTROL_URL is the address of a broker that asks for a password.
    """
    folder = tmp_path_factory.mktemp("program")
    script = folder / "millstream"
    root = FILES.parents[2]
    script.write_text(f'#!/bin/sh\ncd "{root}" && exec "{sys.executable}" -m millstream "$@"\n')
    script.chmod(0o755)
    (folder / "users").write_text("test=pass\n")
    http = folder / "http.properties"
    http.write_text(f"authentication.method=BASIC\nauthentication.users.file={folder / 'users'}\n")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "http.config": str(http),
        "log.dirs": str(folder / "data"),
    }
    words = [word for each in settings.items() for word in ("--override", "=".join(each))]
    command = [script, "broker", "start", "--testing", *words]
    log = folder / "log"
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as protected,
    ):
        try:
            assert protected.stdout is not None
            assert b"ready" in protected.stdout.readline()
            found = re.search(r"metrics on http://(\S+)", log.read_text())
            assert found is not None
            url = f"http://test:pass@{found[1]}"
            yield {**os.environ, "MILLSTREAM": str(script), "CONTROL_URL": url}
        finally:
            protected.terminate()


def run(*command: str | Path, folder: Path, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


def test_java(tmp_path: Path, program: dict[str, str]) -> None:
    libs = fetched_libs("junit", "junit-platform-console-standalone-*.jar")
    sources = [FILES / "java" / "MillstreamBroker.java", JAVA / "MillstreamBrokerTest.java"]
    quick = [f"-J{option}" for option in QUICK_JAVA_OPTIONS.split()]
    options = ["-Xlint:all", "-Werror", "-cp", f"{libs}/*", "-d", str(tmp_path / "classes")]
    run("javac", *quick, *options, *sources, folder=tmp_path)
    launcher = "org.junit.platform.console.ConsoleLauncher"
    words = ["execute", "--select-class", "MillstreamBrokerTest", "--fail-if-no-tests"]
    command = [*java(libs, classes=tmp_path / "classes"), launcher, *words]
    run(*command, folder=tmp_path, environment=program)


def test_go(tmp_path: Path, program: dict[str, str]) -> None:
    """The tests in `fake` are those of franz-go's own fake cluster, by their meaning."""
    needed("go")
    shutil.copytree(GO, tmp_path / "go")
    shutil.copytree(FILES / "go", tmp_path / "go" / "millstream")
    run("go", "vet", "./...", folder=tmp_path / "go")
    run("go", "run", ".", folder=tmp_path / "go", environment=program)
    run("go", "test", "./...", folder=tmp_path / "go", environment=program)


def test_typescript(tmp_path: Path, program: dict[str, str]) -> None:
    modules = node_modules()
    shutil.copytree(modules, tmp_path / "ts", symlinks=True)
    shutil.copy(FILES / "typescript" / "millstream.ts", tmp_path / "ts")
    shutil.copy(TYPESCRIPT / "main.ts", tmp_path / "ts")
    compile_typescript(tmp_path / "ts" / "main.ts", modules)
    run("node", "main.js", folder=tmp_path / "ts", environment=program)
