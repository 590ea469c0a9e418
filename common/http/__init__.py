"""What the servers share: how they accept, answer and look, and their page at `/`.

`accepting` takes connections, `certificates` says when the machine's certificates are read, `front`
is the page at `/` of a server that has no other, `neighbours` the row of links from one server to
the next, `look.css` their look, `serving` joins these with aiohttp, `problems` has errors,
`application` probes and metrics. The broker uses `accepting`, `front` and `neighbours` only, and so
never imports aiohttp.
"""
