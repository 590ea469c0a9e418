"""Start Java programs quickly: the start is most of the cost of a short program.

The prepared files for a folder of jars are in `build/java`, in a folder named after these jars and
this Java version. Without them a program starts in the usual way. Nothing is written to the folder
of the jars, which may belong to the user.
"""

import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from tests.lib.side_by_side import BUILD, one_at_a_time

JAVA = Path(__file__).parents[1] / "interop" / "java"

QUICK_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""No Java process in a test runs long enough to profit from the second compiler (C2): without it a
Spark cluster of five needs two thirds of the processor time. The bytecode of the thousands of
library classes is not verified."""
QUICK_JAVA = ["java", *QUICK_JAVA_OPTIONS.split()]


def fetched_libs(name: str, sign: str) -> Path:
    """Return the folder of the jars that `name`.xml asks for; skip the test if they cannot be had.

    A jar whose name fits `sign` says that Maven has fetched them.
    """
    libs = BUILD / f"{name}-libs"
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("Java or Maven is not installed")
    with one_at_a_time(f"{name}-libs"):
        if not list(libs.glob(sign)):
            part = libs.with_suffix(".part")
            command = ["mvn", "-q", "-B", "-f", str(JAVA / f"{name}.xml")]
            command += ["dependency:copy-dependencies", f"-DoutputDirectory={part}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"The jars of {name}.xml are not available: {done.stdout[-500:]}")
            shutil.rmtree(libs, ignore_errors=True)
            part.rename(libs)
    return libs


@cache
def made_for(libs: str | Path) -> Path:
    """Return the folder of prepared files for these jars and this Java."""
    java = Path(shutil.which("java") or "java").resolve()
    files = [java, *sorted(Path(libs).resolve().glob("*.jar"))]
    found = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return BUILD / "java" / sha256(repr(found).encode()).hexdigest()[:16]


def archive(libs: str | Path) -> Path:
    """Return the class-data archive of these jars, which saves half of a tool's start."""
    return made_for(libs) / "classes.jsa"


def java(libs: str | Path, *options: str, classes: Path | None = None) -> list[str]:
    """Return the first words of a command for these jars; main class and arguments must follow.

    Without the archive, or with one that does not fit, Java loads the classes from the jars without
    a message. The archive fits if the class path begins as at its creation.
    """
    class_path = f"{libs}/*" if classes is None else f"{libs}/*:{classes}"
    shared = f"-XX:SharedArchiveFile={archive(libs)}"
    return [*QUICK_JAVA, shared, *options, "-cp", class_path]


def java_program(libs: str | Path, source: Path, *options: str) -> list[str]:
    """Return the command of one of the tests' Java programs, which is compiled once."""
    made = made_for(libs)
    classes = made / f"{source.stem}-{sha256(source.read_bytes()).hexdigest()[:16]}"
    with one_at_a_time("java-classes"):
        if not classes.exists():
            part = classes.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            quick = [f"-J{option}" for option in QUICK_JAVA_OPTIONS.split()]
            subprocess.run(["javac", *quick, "-cp", f"{libs}/*", "-d", part, source], check=True)
            part.rename(classes)
    return [*java(libs, *options, classes=classes), source.stem]


def is_archived(libs: str | Path) -> bool:
    """Return whether the archive exists, or is known to be impossible."""
    return _class_list(libs).exists()


def java_that_lists(libs: str | Path, listed: Path, *options: str) -> list[str]:
    """Return the first words of a command whose classes are archived after its first run.

    The first run lists the classes in `listed`, for `archive_listed` after its end.
    """
    listing = () if is_archived(libs) else (f"-XX:DumpLoadedClassList={listed}",)
    return java(libs, *listing, *options)


def archive_listed(libs: str | Path, listed: Path) -> None:
    """Archive the classes that a program has listed, unless that is done."""
    with one_at_a_time("java-archive"):
        if listed.exists() and not is_archived(libs):
            make_archive(libs, [listed])


def make_archive(libs: str | Path, lists: Iterable[Path]) -> None:
    """Archive the classes in `lists`, which Java writes (-XX:DumpLoadedClassList)."""
    names = dict.fromkeys(line for each in lists for line in each.read_text().splitlines())
    part = archive(libs).with_suffix(".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    _class_list(libs).write_text("".join(f"{name}\n" for name in names))
    dump = ["-Xshare:dump", f"-XX:SharedClassListFile={_class_list(libs)}"]
    command = ["java", "-XX:+UseSerialGC", *dump, f"-XX:SharedArchiveFile={part}"]
    dumped = subprocess.run([*command, "-cp", f"{libs}/*"], capture_output=True, check=False)
    if dumped.returncode == 0:
        part.rename(archive(libs))


def _class_list(libs: str | Path) -> Path:
    return made_for(libs) / "classes.list"
