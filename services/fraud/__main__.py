"""`python -m services.fraud`: judge spending until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from common.processing.settings import Settings
from services.fraud.app import APPLICATION, FraudWorker, assemble

SERVICE = Service(APPLICATION, FraudWorker, Settings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
