"""Access rules, asked for and changed through the admin client."""

from collections.abc import Iterable

from common.kafka.acls import Acl, AclFilter, ResourcePattern
from common.kafka.admin.client import AdminClient, To, raise_for
from common.kafka.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from common.kafka.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from common.kafka.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(client: AdminClient, wanted: AclFilter) -> list[Acl]:
    """Return the rules that match a filter."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )
    response = client.ask(request, DescribeAclsResponse)
    raise_for(response.error_code, response.error_message)
    return [
        Acl(
            ResourcePattern(each.resource_type, each.resource_name, each.pattern_type),
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in response.resources
        for acl in each.acls
    ]


def create_acls(client: AdminClient, acls: Iterable[Acl]) -> None:
    """Add rules; raises the first refusal."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        ]
    )
    response = client.ask(request, CreateAclsResponse, To.CONTROLLER)
    for result in response.results:
        raise_for(result.error_code, result.error_message)


def delete_acls(client: AdminClient, filters: Iterable[AclFilter]) -> list[Acl]:
    """Delete the rules that the filters match, and return them."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=wanted.resource_type,
                resource_name_filter=wanted.resource_name,
                pattern_type_filter=wanted.pattern_type,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission_type,
            )
            for wanted in filters
        ]
    )
    response = client.ask(request, DeleteAclsResponse, To.CONTROLLER)
    for result in response.filter_results:
        raise_for(result.error_code, result.error_message)
    return [
        Acl(
            ResourcePattern(acl.resource_type, acl.resource_name, acl.pattern_type),
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for result in response.filter_results
        for acl in result.matching_acls
    ]
