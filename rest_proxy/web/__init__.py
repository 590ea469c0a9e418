"""HTTP: the guard of the proxy, the limits of bodies, the addresses in answers."""
