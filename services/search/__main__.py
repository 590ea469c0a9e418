"""`python -m services.search`: index orders and answer questions about them until SIGTERM."""

from common.processing.runner import run_service
from common.processing.service import Service
from services.search.app import APPLICATION, SearchWorker, assemble
from services.search.routes import add_routes
from services.search.settings import SearchSettings

SERVICE = Service(APPLICATION, SearchWorker, SearchSettings, assemble, add_routes)

if __name__ == "__main__":
    run_service(SERVICE)
