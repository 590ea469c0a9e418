"""`python -m services.inventory`: judge and reserve stock until SIGTERM."""

from common.processing.runner import run_service
from common.processing.settings import Settings
from services.inventory.app import APPLICATION, assemble

if __name__ == "__main__":
    run_service(APPLICATION, Settings, assemble)
