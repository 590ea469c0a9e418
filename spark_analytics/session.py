"""The creation of a Spark session, on any master.

    spark = spark_session("revenue", **{"spark.master": "spark://127.0.0.1:7077"})

Settings are Spark's own, by name, and come from three places, the last one winning: the defaults
here, the environment variable MILLSTREAM_SPARK_CONF (`name=value`, one a line or separated by
semicolons) and the arguments. The master is one of them: `local[*]`, `spark://host:port`,
`k8s://...`, `yarn`.

The data source `format("millstream")` is registered in every session. `format("kafka")` needs the
official connector's jars in `spark.jars` (or their coordinates in `spark.jars.packages`); the
options of both are the same.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from spark_analytics.java import java_home
from spark_analytics.source.data_source import MillstreamDataSource

PROJECT_FOLDER = Path(__file__).resolve().parent.parent
CONF_VARIABLE = "MILLSTREAM_SPARK_CONF"

# Defaults for one small machine; each can be overridden.
DEFAULT_SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "768m",
    # Spark matches whole Py4J messages with a recursive regex: a query that stops within a Python
    # foreachBatch overflows the default stack (SPARK-39218, SPARK-48717).
    "spark.driver.extraJavaOptions": "-Xss16m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Data frames go to Python as Arrow batches, without a copy into rows.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stopTimeout": "30s",
    # The Python call sites of columns, for error messages: they treble the calls to Java, which are
    # most of a small micro-batch.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Without its native library Hadoop runs shell commands: for each small file of a checkpoint
    # `readlink` eight times and `chmod` twice, and a stateful query writes a dozen files a batch.
    # A rename by the raw local file system needs only one `chmod`.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}


def spark_session(app_name: str, **settings: str) -> SparkSession:
    """Return the process's session, started with these settings if there is none yet.

    Raise JavaNotFoundError when no Java can run it.
    """
    chosen = session_settings(settings, os.environ)
    os.environ.update(session_environment(chosen, os.environ))
    builder = SparkSession.builder.appName(app_name)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(MillstreamDataSource)
    return spark


def work_in_pool(spark: SparkSession, pool: str) -> None:
    """Run this thread's jobs, and those of streams it starts, in a pool of the fair scheduler.

    Pools share the cores. Within a pool the first job comes first, so a long one would delay all
    others.
    """
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def session_settings(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Merge the defaults, the environment's settings and the caller's, and fill in the rest."""
    named = parse_conf(environment.get(CONF_VARIABLE, "")) | dict(settings)
    master = named.get("spark.master", DEFAULT_SETTINGS["spark.master"])
    local = LOCAL_SETTINGS if is_on_this_machine(master) else {}
    # The executors of a cluster import the source by name.
    workers = {"spark.executorEnv.PYTHONPATH": _python_path(environment)}
    return DEFAULT_SETTINGS | local | workers | named


def session_environment(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of Spark's launcher and its Python workers.

    PYSPARK_PYTHON is set, because workers would run the PATH's `python3`, which lacks pyarrow.
    """
    variables = {
        "JAVA_HOME": str(java_home(environment)),
        "PYSPARK_PYTHON": environment.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": _python_path(environment),
    }
    if is_on_this_machine(settings["spark.master"]):
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


def is_on_this_machine(master: str) -> bool:
    """Return True if all processes of this master run on this machine."""
    return master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))


def parse_conf(text: str) -> dict[str, str]:
    """Read `name=value` settings, one a line or separated by semicolons."""
    entries = [entry.strip() for line in text.splitlines() for entry in line.split(";")]
    pairs = [entry.partition("=") for entry in entries if entry]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ValueError(f"{CONF_VARIABLE}: {wrong[0]!r} is not name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _python_path(environment: Mapping[str, str]) -> str:
    parts = [str(PROJECT_FOLDER), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(part for part in parts if part))
