"""Start Spark's programs quickly. This module imports nothing of Spark."""

import importlib.util
from pathlib import Path

from tests.lib.java import QUICK_JAVA_OPTIONS
from tests.lib.side_by_side import BUILD, one_at_a_time

PARTS = ("bin", "sbin", "jars")


def quick_spark() -> dict[str, str]:
    """Return the environment for Spark, or for a program that starts Spark."""
    return {"JAVA_TOOL_OPTIONS": QUICK_JAVA_OPTIONS, "SPARK_HOME": str(spark_home())}


def spark_home() -> Path:
    """Create a Spark home with links to the installed files, except for its copy of PySpark.

    Python workers import that copy from an archive, which contains no compiled files, so every
    daemon compiles it again for a second. Here they import the installed PySpark, which is the
    same.
    """
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = BUILD / "spark-home"
    with one_at_a_time("spark-home"):
        home.mkdir(exist_ok=True)
        for part in PARTS:
            link, installed = home / part, Path(spec.origin).parent / part
            if not link.is_symlink() or link.readlink() != installed:
                link.unlink(missing_ok=True)
                link.symlink_to(installed)
    return home
