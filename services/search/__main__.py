"""`python -m services.search`: index orders and answer questions about them until SIGTERM."""

from common.processing.runner import run_service
from services.search.app import APPLICATION, assemble
from services.search.routes import add_routes
from services.search.settings import SearchSettings

if __name__ == "__main__":
    run_service(APPLICATION, SearchSettings, assemble, add_routes)
