"""The process that runs a development stack: `millrace up` starts it and returns.

It starts the programs, starts those that die again, seeds what the stack is to have, and shows how
everything is on a page. It says what it does in the file `state.json` of its folder, which the
commands read. Ended in whatever way, it leaves no process behind: the kernel ends them with it.

`supervisor` is the process, `page` the page, `seeding` a program of its own that ends.
"""
