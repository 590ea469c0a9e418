"""HTTP: whom the proxy answers, what a body may be, addresses in answers."""
