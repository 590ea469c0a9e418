"""`python -m services.payments`: charge validated orders until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from services.payments.app import APPLICATION, PaymentsWorker, assemble
from services.payments.settings import PaymentsSettings

SERVICE = Service(APPLICATION, PaymentsWorker, PaymentsSettings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
