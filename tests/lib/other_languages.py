"""Programs in Go and in TypeScript for tests: packages are fetched once, and each is built once.

What is built is in `build`, named after the text that it was built from.
"""

import shutil
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.lib.side_by_side import BUILD, one_at_a_time

INTEROP = Path(__file__).parents[1] / "interop"
GO = INTEROP / "go"
TYPESCRIPT = INTEROP / "typescript"
STRICT = ("--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022")


def needed(*programs: str) -> None:
    """Skip the test if this machine lacks one of the programs."""
    for each in programs:
        if shutil.which(each) is None:
            pytest.skip(f"{each} is not installed")


def go_program(folder: Path) -> Path:
    """Return the built program of a folder in the module of `tests/interop/go`."""
    needed("go")
    built = BUILD / f"{folder.name}-{_named_after([*folder.glob('*.go'), GO / 'go.sum'])}"
    with one_at_a_time("go"):
        if not built.exists():
            part = built.with_suffix(".part")
            subprocess.run(["go", "build", "-o", part, "."], cwd=folder, check=True)
            part.rename(built)
    return built


def typescript_program(source: Path) -> Path:
    """Return a program in a folder with its packages, compiled with every check of types."""
    modules = node_modules()
    built = modules / f"{source.stem}-{_named_after([source])}" / f"{source.stem}.js"
    with one_at_a_time("typescript-programs"):
        if not built.exists():
            part = built.parent.with_suffix(".part")
            part.mkdir(exist_ok=True)
            shutil.copy(source, part)
            shutil.copy(modules / "package.json", part)
            compile_typescript(part / source.name, modules)
            part.rename(built.parent)
    return built


def compile_typescript(source: Path, modules: Path) -> None:
    """Compile a file beside itself; a wrong type fails the test with the compiler's words."""
    compiler = modules / "node_modules" / "typescript" / "bin" / "tsc"
    command: list[str | Path] = ["node", compiler, *STRICT, "--skipLibCheck", source.name]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def node_modules() -> Path:
    """Return a folder with the packages of package.json; skip the test if they cannot be had."""
    needed("node", "npm")
    wanted = TYPESCRIPT / "package.json"
    folder = BUILD / f"typescript-{_named_after([wanted])}"
    with one_at_a_time("typescript"):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            shutil.copy(wanted, part)
            command = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--silent"]
            done = subprocess.run(command, cwd=part, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"npm has no packages: {done.stderr[-500:]}")
            part.rename(folder)
    return folder


def _named_after(files: Iterable[Path]) -> str:
    found = sha256()
    for each in sorted(files):
        found.update(each.read_bytes())
    return found.hexdigest()[:16]
