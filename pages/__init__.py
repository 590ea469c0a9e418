"""What the project's web pages have in common: their look, and the page of every server at `/`.

No program: each of them imports it, and it imports none. `look.css` is the look, `front` the page
of a server that has no other, `neighbours` the row of links from one server to the next.
"""
