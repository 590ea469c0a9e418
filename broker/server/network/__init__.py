"""Listeners, connections in both directions, and the dispatch of frames to their handlers."""
