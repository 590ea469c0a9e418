"""The topics of the streaming job, which is in no consumer group: Spark keeps its positions."""

from common.processing.declared import Declared
from spark_analytics.jobs.topics import INPUTS, RESULTS


def declared() -> list[Declared]:
    """Return the topics."""
    return [Declared("", (*INPUTS, RESULTS))]
