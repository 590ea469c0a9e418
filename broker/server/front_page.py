"""The page of a node at `/` for browsers: its name, its addresses for clients, the next steps.

The page is imported at the first request for it, to save the memory of an idle broker.
"""

from broker.config.broker_config import BrokerConfig
from broker.raft.quorum_state import NO_NODE
from broker.server.broker import Broker
from broker.server.quorum.quorum import Quorum
from common.http.site_guard import SiteGuard, guard_of
from common.http.small_server import Asked, Page

_WHAT = (
    "A node of a cluster that speaks Kafka's protocol. Any Kafka client or tool connects to it, "
    "not with HTTP but at the address below."
)


def own_site(config: BrokerConfig) -> SiteGuard:
    """Return the check that tells this node's host names from those of other sites."""
    listeners = (*config.advertised_listeners, config.http_listener)
    hosts = [each.host for each in listeners if each is not None]
    return guard_of(config.http_allowed_hosts, *hosts)


def front_page(
    config: BrokerConfig, quorum: Quorum, broker: Broker | None, asked: Asked, why_not: str | None
) -> Page | None:
    """Return the page, with why the node is not ready; None if the client accepts no HTML."""
    from common.http.front import HTML, FrontPage, Step, is_wanted, render, response_headers
    from common.http.neighbours import parse_neighbours

    if not is_wanted(asked.headers.get("accept")):
        return None
    kind = "Controller" if broker is None else "Broker"
    facts = _facts(config, quorum, broker)
    address = facts.get("Clients connect to", "HOST:PORT")
    page = FrontPage(
        name=f"broker-{config.node_id}",
        title=f"{kind} {config.node_id}",
        what=_WHAT,
        steps=[
            Step("List the topics.", f"millstream topics --bootstrap-server {address} --list"),
            Step(
                "Read one from its beginning.",
                f"millstream console-consumer --bootstrap-server {address} "
                "--topic orders --from-beginning",
            ),
            Step(
                "See who reads, and how far behind.",
                f"millstream consumer-groups --bootstrap-server {address} --describe --all-groups",
            ),
        ],
        neighbours=parse_neighbours(config.http_neighbours),
    )
    missing = [] if why_not is None else [f"its cluster: {why_not}"]
    text = render(page, origin=f"http://{asked.host}", missing=missing, facts=facts)
    return Page(200, f"{HTML}; charset=utf-8", text.encode(), response_headers())


def _facts(config: BrokerConfig, quorum: Quorum, broker: Broker | None) -> dict[str, str]:
    leader_id = quorum.leader_id
    facts = {
        "Roles": ", ".join(sorted(config.process_roles)),
        "Cluster": quorum.cluster_id,
        "Active controller": "none elected" if leader_id == NO_NODE else f"node {leader_id}",
    }
    if broker is not None:
        _, host, port = broker.listeners.advertised()[0]
        facts["Clients connect to"] = f"{host}:{port}"
        facts["Partitions here"] = str(sum(1 for _ in broker.partitions))
    return facts
