"""What the project's servers have in common: how they accept, their look, and their page at `/`.

No program: each of them imports it, and it imports none. `look.css` is the look, `front` the page
of a server that has no other, `neighbours` the row of links from one server to the next, `serving`
both as the servers built on aiohttp have them, `accepting` how connections are taken,
`certificates` when the machine's are read.
"""
