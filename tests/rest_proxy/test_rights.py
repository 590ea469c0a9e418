"""What the proxy answers for a user who may not see access rules."""

import asyncio

import pytest

from common.credentials.connecting import security_from
from common.kafka.acls import AclFilter
from common.kafka.rights import Right
from rest_proxy.kafka.admin import Admin
from rest_proxy.refusals import UNAUTHORIZED, RestError
from tests.lib.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow

READER = "reader"


def test_a_list_of_rules_that_a_user_may_not_see_is_refused() -> None:
    orders = Right("topic", "orders", False, "READ")
    with SecuredBroker([READER]) as broker:
        broker.allow("anna", [orders])
        told = broker.broker.client_settings(user=READER)
        proxy = Admin(told["bootstrap.servers"], security_from(told), "test")
        with pytest.raises(RestError) as refused:
            asyncio.run(proxy.acls(AclFilter()))
        assert refused.value.error_code == UNAUTHORIZED
        broker.allow(READER, [Right("cluster", "kafka-cluster", False, "DESCRIBE")])
        found = asyncio.run(proxy.acls(AclFilter()))
        assert sorted(each.principal for each in found) == ["User:anna", f"User:{READER}"]
        asyncio.run(proxy.close())
