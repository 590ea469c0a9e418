"""The shell: sockets, timers, the event loop and everything that has effects."""
