"""Quotas: how much of a broker each client may use (KIP-13, 124, 546, 599, 612). Pure.

`rate` measures one stream; `client_quotas` finds the quotas of a client among
those of the cluster's metadata, and names them; `accounts` keeps a rate for each entity that has a
quota; `connection_rates` limits new connections, `connection_counts` open ones.
`broker.server.quotas` applies them to requests.
"""
