"""`python -m services.aggregator`: decide orders until SIGTERM."""

from common.processing.runner import run_service
from services.aggregator.app import APPLICATION, assemble
from services.aggregator.settings import AggregatorSettings

if __name__ == "__main__":
    run_service(APPLICATION, AggregatorSettings, assemble)
