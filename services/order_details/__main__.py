"""`python -m services.order_details`: judge the details of orders until SIGTERM."""

from common.processing.runner import run_service
from common.processing.settings import Settings
from services.order_details.app import APPLICATION, assemble

if __name__ == "__main__":
    run_service(APPLICATION, Settings, assemble)
