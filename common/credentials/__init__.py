"""Kafka's security settings, read in one way for all programs and tools.

`properties` reads a file, `jaas` a login, `stores` keys and certificates, `tls` makes contexts of
them. `translation` has the settings in the spelling of each client library. `access` is where to
start: it is how a program reaches one Kafka cluster.

Nothing here is shown: texts of errors name settings and files, never a value that may be a secret.
"""
