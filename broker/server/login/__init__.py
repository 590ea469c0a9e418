"""TLS and logins: keys, certificates and handshakes, and what SASL mechanisms need of this machine.

The mechanisms themselves are in `broker.security`, without IO. `network.authentication` runs the
exchange of frames on a connection.
"""
