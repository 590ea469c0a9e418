"""Programs of ours that tests start often: each is loaded once in each process of the tests."""

from millrace.forked_process import ForkServer

CONNECT = ForkServer(("connect.start", "mirror.__main__", "connect.worker.standalone"))
STREAMS = ForkServer(("streams.app", "streams.web"))
