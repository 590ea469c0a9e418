"""Make the lock files from pyproject.toml: one set per use, with versions and hashes, no URLs.

All sets are compiled together first, so that any two of them can share one environment.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SETS = {
    "core": (),
    "dev": ("dev",),
    "demo": ("spark", "streams", "object-store", "registry"),
    "spark-jre": ("spark", "spark-jre"),
    # Everything a container may be asked for: search in Elasticsearch, and what connectors need.
    "image": ("elasticsearch", "object-store", "postgresql", "registry", "telemetry"),
}
HERE = Path(__file__).parent
PROJECT = HERE.parent / "pyproject.toml"


def main() -> int:
    """Write requirements/<set>.txt for every set."""
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv) if uv.exists() else str(shutil.which("uv")), "pip", "compile", "--quiet"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--universal"]
    command += ["--no-annotate", "--no-header", "--python-version", "3.11", *sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder) / "all.txt"
        extras = sorted({extra for extras in SETS.values() for extra in extras})
        compile_set([*command, "--no-strip-extras"], extras, together)
        for name, wanted in SETS.items():
            compile_set([*command, "--constraint", str(together)], wanted, HERE / f"{name}.txt")
    return 0


def compile_set(command: list[str], extras: list[str] | tuple[str, ...], target: Path) -> None:
    """Compile the project with some of its extras into one file."""
    options = [part for extra in extras for part in ("--extra", extra)]
    subprocess.run([*command, *options, "--output-file", str(target), str(PROJECT)], check=True)


if __name__ == "__main__":
    sys.exit(main())
