"""ListConfigResources (key 74), versions 0-1: the resources with their own settings.

v0 lists client-metrics subscriptions (KIP-714, where it was called ListClientMetricsResources), v1
any type of resource (KIP-1142).
"""

from common.kafka.protocol.message import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
