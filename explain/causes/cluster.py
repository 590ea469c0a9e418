"""What is wrong with the nodes: brokers that are down or hang, disks, the metadata quorum."""

from collections.abc import Iterator
from typing import Final

from explain.causes.cause import Figures, fact, problem
from explain.facts import Cluster

SILENT_MS: Final = 5_000
"""A voter fetches at least twice a second."""


def _no_controller(cluster: Cluster) -> Iterator[Figures]:
    has_none = cluster.quorum is not None and cluster.quorum.leader_id < 0
    if cluster.quorum_error is not None or has_none:
        yield {"error": cluster.quorum_error or "it has no leader"}


def _silent(cluster: Cluster) -> list[int]:
    """Return the voters that have not fetched for a while."""
    quorum = cluster.quorum
    if quorum is None:
        return []
    return [
        each.node_id
        for each in quorum.voters.values()
        if each.node_id != quorum.leader_id
        and (each.last_fetch_ms is None or cluster.now_ms - each.last_fetch_ms > SILENT_MS)
    ]


def _voter_silent(cluster: Cluster) -> Iterator[Figures]:
    for each in _silent(cluster):
        since_ms = cluster.silent_since_ms(each)
        if since_ms is not None and cluster.quorum is not None:
            yield {
                "voter": each,
                "since": since_ms,
                "silent": cluster.now_ms - since_ms,
                "behind": max(
                    cluster.quorum.high_watermark - cluster.quorum.voters[each].end_offset, 0
                ),
            }


def _voter_never_fetched(cluster: Cluster) -> Iterator[Figures]:
    if cluster.quorum is not None:
        for each in cluster.quorum.unseen:
            yield {"voter": each, "controller": cluster.quorum.leader_id}


def _at_risk(cluster: Cluster) -> Iterator[Figures]:
    if cluster.quorum is None:
        return
    voters, silent = cluster.quorum.voters, _silent(cluster)
    majority = len(voters) // 2 + 1
    if silent and len(voters) - len(silent) <= majority:
        left = sorted(voters.keys() - set(silent))
        yield {"voters": len(voters), "left": left, "majority": majority}


def _fenced(cluster: Cluster) -> Iterator[Figures]:
    for each in cluster.brokers.values():
        since_ms = cluster.silent_since_ms(each.node_id)
        if each.is_fenced:
            silent = (
                "the controller does not know for how long"
                if since_ms is None
                else f"its last fetch of metadata was {(cluster.now_ms - since_ms) // 1000} s ago"
            )
            yield {"broker": each.node_id, "address": each.address, "silent": silent}


def _hangs(cluster: Cluster) -> Iterator[Figures]:
    for each in cluster.brokers.values():
        if each.silence and not each.is_fenced:
            yield {"broker": each.node_id, "address": each.address, "text": each.silence}


def _failed_directories(cluster: Cluster) -> Iterator[Figures]:
    for each in cluster.brokers.values():
        if each.failed_directories:
            yield {"broker": each.node_id, "directories": each.failed_directories}


def _stands(cluster: Cluster) -> Iterator[Figures]:
    if cluster.quorum is not None and cluster.quorum.leader_id >= 0:
        up = [each for each in cluster.brokers if cluster.is_up(each)]
        yield {
            "up": up,
            "controller": cluster.quorum.leader_id,
            "voters": sorted(cluster.quorum.voters),
            "end": cluster.quorum.high_watermark,
        }


CLUSTER = (
    problem(
        "cluster-without-controller",
        _no_controller,
        "The cluster has no active controller ({error}): topics and settings cannot change, no "
        "leader is elected, and brokers that stop cannot return.",
        "A majority of the voters (controller.quorum) must run and reach each other: look at their "
        "processes and logs.",
    ),
    problem(
        "cluster-voter-silent",
        _voter_silent,
        "Voter {voter} of the metadata quorum has not fetched for {silent:duration} (since "
        "{since:time}), and is {behind:record} behind.",
        "Start node {voter}, or look why it cannot reach the active controller.",
    ),
    problem(
        "cluster-voter-never-fetched",
        _voter_never_fetched,
        "Voter {voter} of the metadata quorum has not fetched since node {controller} became the "
        "active controller.",
        "Start node {voter}, or look why it cannot reach the active controller.",
    ),
    problem(
        "cluster-quorum-at-risk",
        _at_risk,
        "Only voters {left:names} of {voters} in the metadata quorum work, and {majority} are "
        "needed: when one more stops, the cluster has no controller.",
        "Bring the silent voters back first, before any other maintenance.",
    ),
    problem(
        "cluster-broker-fenced",
        _fenced,
        "Broker {broker} ({address}) is fenced: it is down, cannot reach the controller, or has "
        "not caught up after its start; {silent}. It leads nothing, and clients do not see it.",
        "Start it, or look at its log. `millstream cluster unregister` removes a broker that will "
        "not return.",
    ),
    problem(
        "cluster-broker-silent",
        _hangs,
        "Broker {broker} ({address}) is registered, but does not answer ({text}): its clients wait "
        "until the controller notices, or they cannot reach that address.",
        "If it hangs, restart it. If only clients cannot reach it, correct advertised.listeners.",
    ),
    problem(
        "cluster-directory-failed",
        _failed_directories,
        "Broker {broker} has lost log directories: {directories:names}. Their replicas are "
        "offline.",
        "Look at the disk. After it is repaired or replaced, restart the broker; replicas are "
        "copied from their leaders.",
    ),
    fact(
        "cluster-state",
        _stands,
        "Up: {up:brokers}. Node {controller} is the active controller, with voters {voters:names} "
        "and {end:record} of metadata.",
    ),
)
