"""`python -m services.aggregator`: decide orders until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from services.aggregator.app import APPLICATION, AggregatorWorker, assemble
from services.aggregator.settings import AggregatorSettings

SERVICE = Service(APPLICATION, AggregatorWorker, AggregatorSettings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
