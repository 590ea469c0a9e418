"""What the servers share: how they accept, answer and look, and their page at `/`.

`accepting` takes connections, `front` is the page at
`/` of a server that has no other, `neighbours` the row of links from one server to
the next, `look.css` their look, `serving` joins these with aiohttp, `problems` has errors (as a
`problem_document`), `application` probes and metrics. `bodies` reads a body within a time,
`broken_requests` answers what is no request; `security` and `settings` say how a program serves,
`authenticating` lets in users, `site_guard` decides which sites may call, and `guarding` has
aiohttp ask it. `small_server` is a server without aiohttp. The broker uses what needs no aiohttp.
"""
