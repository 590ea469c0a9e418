"""How the programs' log lines look."""

import logging
import sys


def configure_logging() -> None:
    """Log to standard error, one event with fields per line."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    # aiokafka repeats a refused connection many times a second; the services say it once.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
