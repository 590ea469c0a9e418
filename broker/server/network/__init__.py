"""Bytes in and out: listeners and connections, in both directions; which handler a frame is for."""
