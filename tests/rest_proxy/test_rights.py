"""What the proxy answers for a user who may not see access rules."""

import asyncio

import pytest

from common.kafka.rights import Right
from rest_proxy.kafka.admin import Admin, parts
from rest_proxy.refusals import UNAUTHORIZED, RestError
from tests.lib.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow

READER = "reader"


def test_a_list_of_rules_that_a_user_may_not_see_is_refused() -> None:
    """librdkafka shows the refusal as an empty list."""
    admin = parts()
    every = admin.AclBindingFilter(
        admin.ResourceType.ANY,
        None,
        admin.ResourcePatternType.ANY,
        None,
        None,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ANY,
    )
    orders = Right("topic", "orders", False, "READ")
    with SecuredBroker([READER]) as broker:
        broker.allow("anna", [orders])
        proxy = Admin(broker.broker.client_settings(user=READER))
        with pytest.raises(RestError) as refused:
            asyncio.run(proxy.acls(every))
        assert refused.value.error_code == UNAUTHORIZED
        broker.allow(READER, [Right("cluster", "kafka-cluster", False, "DESCRIBE")])
        found = asyncio.run(proxy.acls(every))
        assert sorted(each.principal for each in found) == ["User:anna", f"User:{READER}"]
