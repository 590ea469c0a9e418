"""Faults on demand, in a broker that is started with `--testing`, and never otherwise.

    faulty_handlers  what the rules of `broker.faults` do to the calls of clients; notes each call
    breaking         what is done to a connection: held, closed, reset, its answer torn
    damage           the records of a Fetch answer, damaged
    faulty_storage   the disk that is slow, full or fails
    session_partitions
                     the partitions of a Fetch that it does not name, because its session has them
    control          the control by HTTP: the table of its routes, how a request finds its route
    routes           what a route is, and what its function is given and returns
    fault_routes     the routes `/faults` and `/requests`
    state_routes     the routes `/clock`, `/snapshot` and `/restore`
    open_api         the document at `/openapi.json`, made from the routes
    testing          what `node` starts and asks

One more route is one more `Route` in the list `Testing.routes`, added before the control is made:
its method, its path (`{id}` stands for a number), a function that takes a `Command` and returns an
`Answer`, or a coroutine of one, and what `/openapi.json` says about it. The function reads a body
with `Command.json_body`, and refuses with `Refused(status, detail)`. Only the parameters that the
table has for the route reach it. `FaultRoutes` is an example.
"""
