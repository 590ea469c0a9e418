"""The one place where a Spark session is made, on any master.

    spark = spark_session("revenue", **{"spark.master": "spark://127.0.0.1:7077"})

Settings are Spark's own, by name, and come from three places, the last one winning: what is written
here, the environment variable MILLRACE_SPARK_CONF (`name=value`, one a line or between semicolons)
and the arguments. The master is one of them: `local[*]`, `spark://host:port`, `k8s://...`, `yarn`.

The data source `format("millrace")` is registered in every session. `format("kafka")` is there as
soon as the official connector's jars are named in `spark.jars` (or by coordinates in
`spark.jars.packages`); the options of both are the same.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from spark_analytics.java import java_home
from spark_analytics.source.data_source import MillraceDataSource

PROJECT_FOLDER = Path(__file__).resolve().parent.parent
CONF_VARIABLE = "MILLRACE_SPARK_CONF"

# Right for one small machine; every one can be overridden.
DEFAULT_SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "768m",
    # Spark matches whole Py4J messages with a recursive regex: a query stopped within a Python
    # foreachBatch overflows the ordinary stack (SPARK-39218, SPARK-48717).
    "spark.driver.extraJavaOptions": "-Xss16m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The source hands over Arrow batches as they are: no copy into rows on the way to Python.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stopTimeout": "30s",
    # Where in Python a column was made, for error messages: it trebles the calls to Java, and a
    # small micro-batch is mostly such calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Without its native library Hadoop asks the shell: for each small file of a checkpoint eight
    # times `readlink` and twice `chmod`, and a query with state writes a dozen files a batch. A
    # rename by the plain local file system needs none of that but one `chmod`.
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
    spark.dataSource.register(MillraceDataSource)
    return spark


def work_in_pool(spark: SparkSession, pool: str) -> None:
    """Have this thread's jobs, and those of streams it starts, share the cores with other pools'.

    Within a pool the first job comes first, so a long one would hold up all others.
    """
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def session_settings(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Merge the defaults, the environment's settings and the caller's, and fill in the rest."""
    named = parse_conf(environment.get(CONF_VARIABLE, "")) | dict(settings)
    master = named.get("spark.master", DEFAULT_SETTINGS["spark.master"])
    local = LOCAL_SETTINGS if is_on_this_machine(master) else {}
    # The executors of a cluster import the source by name, from wherever they run it.
    workers = {"spark.executorEnv.PYTHONPATH": _python_path(environment)}
    return DEFAULT_SETTINGS | local | workers | named


def session_environment(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables Spark's launcher and its Python workers must see.

    PYSPARK_PYTHON, since workers else run the `python3` of the PATH, which lacks pyarrow.
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
    """Tell whether nothing beyond this machine need reach the driver."""
    return master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))


def parse_conf(text: str) -> dict[str, str]:
    """Read `name=value` settings, one a line or between semicolons."""
    entries = [entry.strip() for line in text.splitlines() for entry in line.split(";")]
    pairs = [entry.partition("=") for entry in entries if entry]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ValueError(f"{CONF_VARIABLE}: {wrong[0]!r} is not name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _python_path(environment: Mapping[str, str]) -> str:
    parts = [str(PROJECT_FOLDER), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(part for part in parts if part))
