"""Programs that tests start often: each process of the tests loads their modules once."""

from millstream.processes.forked_process import ForkServer

CONNECT = ForkServer(("connect.start", "mirror.__main__", "connect.worker.standalone"))
STREAMS = ForkServer(("streams.app", "streams.web"))
