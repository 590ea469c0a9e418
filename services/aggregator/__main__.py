"""`python -m services.aggregator`: decide orders until SIGTERM."""

from services.aggregator.app import APPLICATION, assemble
from services.aggregator.settings import AggregatorSettings
from services.common.runner import run_service

if __name__ == "__main__":
    run_service(APPLICATION, AggregatorSettings, assemble)
