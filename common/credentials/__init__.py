"""Kafka's security settings, read in one way for all programs and tools.

`jaas` reads a login, `stores` keys and certificates, `tls` makes contexts of them, `tokens` and
`fetching` get tokens, `kerberos` and `kerberos_context` are for tickets, `scram` keeps what stands
in place of a password. `mechanisms` is a login by its mechanism; `connecting`, `sasl_client` and
`gssapi_client` log in over a connection of our own client, `errors` has their failures;
`aiokafka_clients` and `registry` are for clients of their kind. `translation` has the settings in
the spelling of each client library. `access` is where to start: it is how a program reaches one
Kafka cluster.

Nothing here is shown: texts of errors name settings and files, never a value that may be a secret.
"""
