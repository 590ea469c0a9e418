"""Counts the records of a topic through both formats, in a session made by the environment alone.

count_rows.py SERVERS TOPIC prints {format: rows} as JSON.
"""

import json
import sys

from spark_analytics.session import spark_session
from tests.lib.spark import source_options


def main(servers: str, topic: str) -> None:
    spark = spark_session("count")
    options = source_options(servers, topic)
    frames = {name: spark.read.format(name).options(**options) for name in ("kafka", "millrace")}
    counts = {name: frame.load().count() for name, frame in frames.items()}
    spark.stop()
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
