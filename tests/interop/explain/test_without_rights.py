"""A user that may not ask is told so; what it may ask is answered."""

import pytest

from common.kafka.acls import AclOperation, ResourceType
from millstream.testing import LocalBroker
from tests.lib.explained import Explained

pytestmark = pytest.mark.interop

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


def test_what_a_user_may_not_ask_is_said() -> None:
    with LocalBroker(security="sasl_plaintext", users={"bob": "his"}, **SETTINGS) as broker:
        admin = Explained(broker.bootstrap_servers, broker.client_file())
        bob = Explained(broker.bootstrap_servers, broker.client_file("bob"))
        admin.create("orders")
        admin.produce("orders", 3)
        admin.commit("fraud", {("orders", 0): 1})

        assert bob.topic("orders").codes == {"asking-not-allowed"}
        group = bob.group("fraud")
        assert "asking-not-allowed" in group.codes
        assert "group-missing" not in group.codes
        assert "asking-not-allowed" in bob.cluster().codes

        admin.permit("User:bob", AclOperation.READ, ResourceType.TOPIC, "orders")
        record = bob.topic("orders", 0, 1)
        assert "record-readable" in record.codes
        assert "asking-not-allowed" in record.codes
        assert not record.problems
