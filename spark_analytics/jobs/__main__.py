"""`python -m spark_analytics.jobs`: run the streaming job."""

import sys

from common.process.ending import run_until_closed
from spark_analytics.jobs.application import main

sys.exit(run_until_closed(main))
