"""Authentication and authorisation, as pure state machines and rules.

- `acls.py`: what an access rule says, and which rules a filter matches.
- `authorizer.py`: whether a principal may do an operation on a resource.
- `principal.py`: the names of principals, also those made of a TLS certificate's subject.
- `scram.py`, `plain.py`: the server's side of the SASL mechanisms: bytes in, bytes out.
- `credentials.py`: SCRAM credentials, made of a salted password.
- `jaas.py`: Kafka's spelling of login settings.

Nothing here reads a file, a socket, a clock or a random source.
"""
