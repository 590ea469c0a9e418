"""`python -m services.email`: write to customers until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from services.email.app import APPLICATION, EmailWorker, assemble
from services.email.settings import EmailSettings

SERVICE = Service(APPLICATION, EmailWorker, EmailSettings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
