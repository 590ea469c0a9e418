"""What is done to the logs beside the requests: recovery, flushing, retention, cleaning, moving."""
