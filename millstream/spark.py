"""Spark sessions that read and write Kafka with `format("millstream")`.

    from millstream.spark import spark_session

    spark = spark_session("revenue")

The code of the session is in the folder of the programs, which is added at the end of the path,
here and in Spark's workers. A user's package named `common` or `spark_analytics` would be found
first, so it is refused with a message.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.cli.extras import NEEDED, missing
from millstream.launch import programs_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

_OURS = ("common", "spark_analytics")


def spark_session(app_name: str, **settings: str) -> "SparkSession":
    """Return the process's session, started with these settings of Spark's if there is none yet.

    Raise ImportError if PySpark is missing, or if a user's package has the name of one that the
    session needs, and RuntimeError if no suitable Java is found.
    """
    if problem := missing(NEEDED["spark-job"], "millstream.spark"):
        raise ImportError(problem)
    _find_programs()
    session: Any = import_module("spark_analytics.session")
    made: SparkSession = session.spark_session(app_name, **settings)
    return made


def _find_programs() -> None:
    folder = programs_folder()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    for name in _OURS:
        found = find_spec(name)
        origin = found.origin if found is not None else None
        if origin is None or Path(origin).resolve().parent.parent != folder.resolve():
            raise ImportError(
                f"millstream.spark needs its own package {name!r}, and {origin} comes before it: "
                "run the job without that folder on the path"
            )
