"""How Hypothesis runs here: the same examples everywhere, and no clock.

A busy machine is no bug, so there are no deadlines. `HYPOTHESIS_PROFILE=explore` looks for new
examples instead of the same ones; what it finds becomes an explicit `@example`.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", parent=settings.get_profile("same"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
