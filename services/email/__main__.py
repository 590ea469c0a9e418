"""`python -m services.email`: write to customers until SIGTERM."""

from common.processing.runner import run_service
from services.email.app import APPLICATION, assemble
from services.email.settings import EmailSettings

if __name__ == "__main__":
    run_service(APPLICATION, EmailSettings, assemble)
