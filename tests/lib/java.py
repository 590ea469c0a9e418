"""Java's programs, started quickly: most of what a short one costs is its start.

What is made once for a folder of jars is in `build/java`, in a folder named for those jars and this
Java: others find nothing there, and are started as if nothing had been made. Nothing is written
where the jars are, which may be somebody's own.
"""

import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.lib.side_by_side import BUILD, one_at_a_time

QUICK_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""No Java lives long enough in a test to earn back what its second compiler costs: without it a
Spark cluster of five takes two thirds of the processor time. Nor are others' classes, of which
there are thousands, checked for being well formed."""
QUICK_JAVA = ["java", *QUICK_JAVA_OPTIONS.split()]


@cache
def made_for(libs: str | Path) -> Path:
    """Name the folder of what is made for these jars and this Java."""
    java = Path(shutil.which("java") or "java").resolve()
    files = [java, *sorted(Path(libs).resolve().glob("*.jar"))]
    found = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return BUILD / "java" / sha256(repr(found).encode()).hexdigest()[:16]


def archive(libs: str | Path) -> Path:
    """Name the archive of these jars' classes as Java has loaded them: half of a tool's start."""
    return made_for(libs) / "classes.jsa"


def java(libs: str | Path, *options: str, classes: Path | None = None) -> list[str]:
    """Begin the command of a program in these jars; its main class and arguments are to follow.

    Without the archive, or with one that does not fit, Java loads what it needs from the jars and
    says nothing. It fits when the class path begins as it did when it was made.
    """
    class_path = f"{libs}/*" if classes is None else f"{libs}/*:{classes}"
    shared = f"-XX:SharedArchiveFile={archive(libs)}"
    return [*QUICK_JAVA, shared, *options, "-cp", class_path]


def java_program(libs: str | Path, source: Path, *options: str) -> list[str]:
    """Give the command of a program of ours, which is compiled once."""
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
    """Tell whether the archive is made, or was seen not to be possible."""
    return _class_list(libs).exists()


def java_that_lists(libs: str | Path, listed: Path, *options: str) -> list[str]:
    """Begin the command of a program whose classes are archived when it has first been run.

    Until then it lists them in `listed`, for `archive_listed` once it has ended.
    """
    listing = () if is_archived(libs) else (f"-XX:DumpLoadedClassList={listed}",)
    return java(libs, *listing, *options)


def archive_listed(libs: str | Path, listed: Path) -> None:
    """Archive what a program has listed, if it was still to."""
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
