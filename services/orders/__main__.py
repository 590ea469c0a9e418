"""`python -m services.orders`: take orders until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from services.orders.app import assemble
from services.orders.routes import add_routes
from services.orders.settings import OrdersSettings
from services.orders.worker import APPLICATION, OrdersWorker

SERVICE = Service(APPLICATION, OrdersWorker, OrdersSettings, assemble, add_routes)

if __name__ == "__main__":
    run_service(SERVICE)
