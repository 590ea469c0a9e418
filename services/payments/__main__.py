"""`python -m services.payments`: charge validated orders until SIGTERM."""

from common.processing.runner import run_service
from services.payments.app import APPLICATION, assemble
from services.payments.settings import PaymentsSettings

if __name__ == "__main__":
    run_service(APPLICATION, PaymentsSettings, assemble)
