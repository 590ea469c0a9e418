"""Background work on the logs: recovery, flushing, retention, cleaning, moving."""
