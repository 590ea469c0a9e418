"""`python -m spark_analytics.jobs`: run the streaming job."""

import sys

from spark_analytics.jobs.application import main

sys.exit(main())
