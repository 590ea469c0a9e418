"""`python -m services.order_details`: judge the details of orders until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from common.processing.settings import Settings
from services.order_details.app import APPLICATION, OrderDetailsWorker, assemble

SERVICE = Service(APPLICATION, OrderDetailsWorker, Settings, assemble)

if __name__ == "__main__":
    run_service(SERVICE)
