"""Which instance leads, and what happens to a write that reaches another one."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.test_utils import make_mocked_request

from common.kafka.client.exchange import ConnectionFailed
from common.kafka.protocol.messages.leave_group import LeaveGroupResponse
from schemas.registry.changes import Change
from schemas.registry.forwarding import Writes
from schemas.registry.leader import (
    Identity,
    _leader_in,
    _members,
    _Membership,
    elect,
    identity_from,
)
from schemas.registry.refusals import RegistryError
from tests.schemas.memory_topic import MemoryTopic, leading

FIRST, SECOND = Identity("a", 8081), Identity("b", 8081)


def test_eligible_one_whose_url_sorts_first_leads() -> None:
    election = elect({"m2": SECOND, "m1": FIRST})
    assert (election.member_id, election.error) == ("m1", 0)


def test_one_that_leads_goes_on() -> None:
    leading_second = Identity("b", 8081, is_leader=True)
    assert elect({"m1": FIRST, "m2": leading_second}).member_id == "m2"


def test_two_that_both_think_they_lead_are_elected_anew() -> None:
    both = {"m2": Identity("b", 1, is_leader=True), "m1": Identity("a", 1, is_leader=True)}
    assert elect(both).member_id == "m1"


def test_one_that_is_not_eligible_never_leads() -> None:
    assert elect({"m1": Identity("a", 8081, is_eligible=False)}).leader is None


def test_two_with_one_url_are_told_so() -> None:
    assert elect({"m1": FIRST, "m2": FIRST}).error == 1


@pytest.mark.parametrize(
    "metadata",
    [
        b'{"host":"a","port":1e999}',
        b'{"host":"a","port":' + b"1" * 5000 + b"}",
        b'{"host":"a","port":70000}',
        b'{"host":"a","port":0}',
        b'{"host":"","port":1}',
        b'{"host":"a","port":1,"scheme":"file"}',
        b'{"host":"\\ud800","port":1}',
        b'{"host":"a"}',
        b"[1]",
        b"7",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_member_whose_identity_cannot_be_read_is_never_elected(metadata: bytes) -> None:
    joined = {"strange": metadata, "good": json.dumps(SECOND.to_json()).encode()}
    assert _members(joined) == {"good": SECOND}
    assert _leader_in(b'{"master_identity":' + metadata + b"}") is None


def test_identity_and_election_have_confluents_json() -> None:
    assert identity_from(FIRST.to_json()) == FIRST
    assert elect({"m1": FIRST}).to_json() == {
        "version": 1,
        "error": 0,
        "master": "m1",
        "master_identity": {**FIRST.to_json(), "leader": True},
    }


def test_forwarded_write_that_reaches_no_leader_does_not_go_in_circles() -> None:
    async def check() -> None:
        leadership = leading()
        leadership._follow(FIRST)
        writes = Writes(MemoryTopic([]), leadership)
        request = make_mocked_request("PUT", "/mode", headers={"X-Forward": "true"})
        with pytest.raises(RegistryError) as told:
            await writes.write(request, lambda registry: Change([], None))
        assert told.value.error_code == 50004

    asyncio.run(check())


def test_leader_that_is_gone_is_said() -> None:
    async def check() -> None:
        leadership = leading()
        leadership._follow(Identity("127.0.0.1", 1))
        writes = Writes(MemoryTopic([]), leadership)
        leadership.identity = SECOND
        try:
            request = make_mocked_request("PUT", "/mode", payload=EMPTY_PAYLOAD)
            with pytest.raises(RegistryError) as told:
                await writes.write(request, lambda registry: Change([], None))
            assert told.value.error_code == 50003
        finally:
            await writes.close()

    asyncio.run(check())


@pytest.mark.parametrize("can_say_it", [True, False])
def test_a_member_that_could_not_say_that_it_left_comes_back_as_itself(can_say_it: bool) -> None:
    class Client:
        async def coordinator(self, kind: int, key: str) -> int:
            return 1

        async def ask(self, *_: object, **__: object) -> LeaveGroupResponse:
            if not can_say_it:
                raise ConnectionFailed
            return LeaveGroupResponse()

    async def leave(member: _Membership) -> None:
        await member.find_coordinator()
        await member.leave_if_reached()

    client: Any = Client()
    member = _Membership(client, "registries", "member-1")
    asyncio.run(leave(member))
    assert member.member_id == ("" if can_say_it else "member-1")
