"""The topics of the streaming job. It has no consumer group: Spark keeps its offsets."""

from common.processing.declared import Declared
from spark_analytics.jobs.topics import INPUTS, RESULTS


def declared() -> list[Declared]:
    """Return the topics."""
    return [Declared("", (*INPUTS, RESULTS))]
