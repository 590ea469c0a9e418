"""Authentication and authorisation, as pure state machines and rules.

- `authorizer.py`: whether a principal may do an operation on a resource; `common/kafka/acls.py`
  has what a rule says.
- `principal.py`, `kerberos_names.py`: the names of principals, also of those that come from the
  subject of a TLS certificate or from a Kerberos ticket.
- `sasl_session.py`: one client's authentication on a connection, from handshake to its end.
- `plain.py`, `scram.py`, `oauthbearer.py`, `gssapi_server.py`: the server's side of the mechanisms:
  bytes in, bytes out. `common.credentials` has the client's side, and SCRAM credentials.
- `unknown_users.py`: what SCRAM answers about a user that does not exist.
- `delegation_tokens.py`: what a delegation token says, and who may renew it.
- `jwt_claims.py`, `jwks.py`: the checks of an OAUTHBEARER token, and the keys of its issuer.

Nothing here reads a file, a socket, a clock or a random source.
"""
