"""`python -m services.inventory`: judge and reserve stock until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from common.processing.settings import Settings
from services.inventory.app import APPLICATION, InventoryWorker, assemble

SERVICE = Service(APPLICATION, InventoryWorker, Settings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
