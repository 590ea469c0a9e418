"""All broker settings of Apache Kafka 4.3 by name, type and default, and seven other ones.

The table gives the known names, their types and their defaults. `-` stands for null and `""` for
the empty text. `docs/defaults.md` lists every default that differs from Kafka's, with the reason.
The settings that Kafka does not have are `http.listener` (health and metrics),
`client.telemetry.otlp.endpoint` (where client metrics are sent to), `slow.request.trace.ms` (which
requests OpenTelemetry is told of),
`http.config` (its TLS and users), `http.allowed.hosts` (more names of it), `http.neighbours`
(links on its page) and `controller.fast.failure.detection.enable` (a node whose port refuses
connections counts as failed).
`super.users` and `allow.everyone.if.no.acl.found` are settings of Kafka's StandardAuthorizer.
"""

from dataclasses import dataclass
from typing import Final

_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms INT 100
add.partitions.to.txn.retry.backoff.ms INT 20
advertised.listeners LIST -
allow.everyone.if.no.acl.found BOOLEAN false
alter.config.policy.class.name CLASS -
alter.log.dirs.replication.quota.window.num INT 11
alter.log.dirs.replication.quota.window.size.seconds INT 1
authorizer.class.name STRING ""
auto.create.topics.enable BOOLEAN true
auto.leader.rebalance.enable BOOLEAN true
background.threads INT 10
broker.heartbeat.interval.ms INT 2000
broker.id INT -1
broker.rack STRING -
broker.session.timeout.ms INT 9000
client.quota.callback.class CLASS -
client.telemetry.otlp.endpoint STRING ""
compression.gzip.level INT -1
compression.lz4.level INT 9
compression.type STRING producer
compression.zstd.level INT 3
config.providers LIST ""
connection.failed.authentication.delay.ms INT 100
connections.max.idle.ms LONG 600000
connections.max.reauth.ms LONG 0
controlled.shutdown.enable BOOLEAN true
controller.fast.failure.detection.enable BOOLEAN true
controller.listener.names LIST CONTROLLER
controller.quorum.append.linger.ms INT 25
controller.quorum.auto.join.enable BOOLEAN false
controller.quorum.bootstrap.servers LIST ""
controller.quorum.election.backoff.max.ms INT 1000
controller.quorum.election.timeout.ms INT 1000
controller.quorum.fetch.max.bytes INT 1048576
controller.quorum.fetch.snapshot.max.bytes INT 1048576
controller.quorum.fetch.timeout.ms INT 2000
controller.quorum.request.timeout.ms INT 2000
controller.quorum.retry.backoff.ms INT 20
controller.quorum.voters LIST ""
controller.quota.window.num INT 11
controller.quota.window.size.seconds INT 1
controller.socket.timeout.ms INT 30000
cordoned.log.dirs LIST ""
create.topic.policy.class.name CLASS -
default.replication.factor INT 1
delegation.token.expiry.check.interval.ms LONG 3600000
delegation.token.expiry.time.ms LONG 86400000
delegation.token.max.lifetime.ms LONG 604800000
delegation.token.secret.key PASSWORD -
delete.records.purgatory.purge.interval.requests INT 1
delete.topic.enable BOOLEAN true
early.start.listeners LIST -
fetch.max.bytes INT 57671680
fetch.purgatory.purge.interval.requests INT 1000
follower.fetch.last.tiered.offset.enable BOOLEAN false
follower.replication.throttled.rate LONG 9223372036854775807
group.consumer.assignment.interval.ms INT 1000
group.consumer.assignors LIST uniform,range
group.consumer.heartbeat.interval.ms INT 5000
group.consumer.max.assignment.interval.ms INT 15000
group.consumer.max.heartbeat.interval.ms INT 15000
group.consumer.max.session.timeout.ms INT 60000
group.consumer.max.size INT 2147483647
group.consumer.migration.policy STRING bidirectional
group.consumer.min.assignment.interval.ms INT 0
group.consumer.min.heartbeat.interval.ms INT 5000
group.consumer.min.session.timeout.ms INT 45000
group.consumer.session.timeout.ms INT 45000
group.coordinator.append.linger.ms INT -1
group.coordinator.background.threads INT 2
group.coordinator.cached.buffer.max.bytes INT 1048588
group.coordinator.rebalance.protocols LIST classic,consumer,streams
group.coordinator.threads INT 4
group.initial.rebalance.delay.ms INT 3000
group.max.session.timeout.ms INT 1800000
group.max.size INT 2147483647
group.min.session.timeout.ms INT 6000
group.share.assignment.interval.ms INT 1000
group.share.assignors LIST simple
group.share.delivery.count.limit INT 5
group.share.heartbeat.interval.ms INT 5000
group.share.initialize.retry.interval.ms INT 30000
group.share.max.assignment.interval.ms INT 15000
group.share.max.delivery.count.limit INT 10
group.share.max.heartbeat.interval.ms INT 15000
group.share.max.partition.max.record.locks INT 4000
group.share.max.record.lock.duration.ms INT 60000
group.share.max.session.timeout.ms INT 60000
group.share.max.share.sessions INT 2000
group.share.max.size INT 200
group.share.min.assignment.interval.ms INT 0
group.share.min.delivery.count.limit INT 2
group.share.min.heartbeat.interval.ms INT 5000
group.share.min.partition.max.record.locks INT 100
group.share.min.record.lock.duration.ms INT 15000
group.share.min.session.timeout.ms INT 45000
group.share.partition.max.record.locks INT 2000
group.share.record.lock.duration.ms INT 30000
group.share.session.timeout.ms INT 45000
group.streams.assignment.interval.ms INT 1000
group.streams.heartbeat.interval.ms INT 5000
group.streams.initial.rebalance.delay.ms INT 3000
group.streams.max.assignment.interval.ms INT 15000
group.streams.max.heartbeat.interval.ms INT 15000
group.streams.max.session.timeout.ms INT 60000
group.streams.max.size INT 2147483647
group.streams.max.standby.replicas INT 2
group.streams.min.assignment.interval.ms INT 0
group.streams.min.heartbeat.interval.ms INT 5000
group.streams.min.session.timeout.ms INT 45000
group.streams.num.standby.replicas INT 0
group.streams.session.timeout.ms INT 45000
http.allowed.hosts LIST ""
http.config STRING ""
http.listener STRING 127.0.0.1:0
http.neighbours STRING ""
initial.broker.registration.timeout.ms INT 60000
inter.broker.listener.name STRING -
kafka.metrics.polling.interval.secs INT 10
kafka.metrics.reporters LIST ""
leader.imbalance.check.interval.seconds LONG 300
leader.replication.throttled.rate LONG 9223372036854775807
listener.security.protocol.map STRING SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listeners LIST PLAINTEXT://127.0.0.1:9092
log.cleaner.backoff.ms LONG 15000
log.cleaner.dedupe.buffer.size LONG 134217728
log.cleaner.delete.retention.ms LONG 86400000
log.cleaner.enable BOOLEAN true
log.cleaner.io.buffer.load.factor DOUBLE 0.9
log.cleaner.io.buffer.size INT 524288
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807
log.cleaner.min.cleanable.ratio DOUBLE 0.5
log.cleaner.min.compaction.lag.ms LONG 0
log.cleaner.threads INT 1
log.cleanup.policy LIST delete
log.dir LIST /tmp/millstream-logs
log.dir.failure.timeout.ms LONG 30000
log.dirs LIST -
log.flush.interval.messages LONG 9223372036854775807
log.flush.interval.ms LONG -
log.flush.offset.checkpoint.interval.ms INT 60000
log.flush.scheduler.interval.ms LONG 9223372036854775807
log.flush.start.offset.checkpoint.interval.ms INT 60000
log.index.interval.bytes INT 4096
log.index.size.max.bytes INT 10485760
log.local.retention.bytes LONG -2
log.local.retention.ms LONG -2
log.message.timestamp.after.max.ms LONG 3600000
log.message.timestamp.before.max.ms LONG 9223372036854775807
log.message.timestamp.type STRING CreateTime
log.preallocate BOOLEAN false
log.retention.bytes LONG -1
log.retention.check.interval.ms LONG 300000
log.retention.hours INT 168
log.retention.minutes INT -
log.retention.ms LONG -
log.roll.hours INT 168
log.roll.jitter.hours INT 0
log.roll.jitter.ms LONG -
log.roll.ms LONG -
log.segment.bytes INT 1073741824
log.segment.delete.delay.ms LONG 60000
max.connection.creation.rate INT 2147483647
max.connections INT 2147483647
max.connections.per.ip INT 2147483647
max.connections.per.ip.overrides STRING ""
max.incremental.fetch.session.cache.slots INT 1000
max.request.partition.size.limit INT 2000
message.max.bytes INT 1048588
metadata.log.dir STRING -
metadata.log.max.record.bytes.between.snapshots LONG 20971520
metadata.log.max.snapshot.interval.ms LONG 3600000
metadata.log.segment.bytes INT 1073741824
metadata.log.segment.ms LONG 604800000
metadata.max.idle.interval.ms INT 500
metadata.max.retention.bytes LONG 104857600
metadata.max.retention.ms LONG 604800000
metric.reporters LIST ""
metrics.num.samples INT 2
metrics.recording.level STRING INFO
metrics.sample.window.ms LONG 30000
min.insync.replicas INT 1
node.id INT 1
num.io.threads INT 8
num.network.threads INT 3
num.partitions INT 1
num.recovery.threads.per.data.dir INT 2
num.replica.alter.log.dirs.threads INT -
num.replica.fetchers INT 1
offset.metadata.max.bytes INT 4096
offsets.commit.timeout.ms INT 5000
offsets.load.buffer.size INT 5242880
offsets.retention.check.interval.ms LONG 600000
offsets.retention.minutes INT 10080
offsets.topic.compression.codec INT 0
offsets.topic.num.partitions INT 50
offsets.topic.replication.factor SHORT 3
offsets.topic.segment.bytes INT 104857600
org.apache.kafka.sasl.oauthbearer.allowed.urls LIST ""
principal.builder.class CLASS -
process.roles LIST broker,controller
producer.id.expiration.ms INT 86400000
producer.purgatory.purge.interval.requests INT 1000
queued.max.request.bytes LONG -1
queued.max.requests INT 500
quota.window.num INT 11
quota.window.size.seconds INT 1
remote.fetch.max.wait.ms INT 500
remote.list.offsets.request.timeout.ms LONG 30000
remote.log.index.file.cache.total.size.bytes LONG 1073741824
remote.log.manager.copier.thread.pool.size INT 10
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807
remote.log.manager.copy.quota.window.num INT 11
remote.log.manager.copy.quota.window.size.seconds INT 1
remote.log.manager.expiration.thread.pool.size INT 10
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807
remote.log.manager.fetch.quota.window.num INT 11
remote.log.manager.fetch.quota.window.size.seconds INT 1
remote.log.manager.follower.thread.pool.size INT 2
remote.log.manager.task.interval.ms LONG 30000
remote.log.manager.thread.pool.size INT 2
remote.log.metadata.custom.metadata.max.bytes INT 128
remote.log.metadata.manager.class.name STRING -
remote.log.metadata.manager.class.path STRING -
remote.log.metadata.manager.impl.prefix STRING rlmm.config.
remote.log.metadata.manager.listener.name STRING -
remote.log.reader.max.pending.tasks INT 100
remote.log.reader.threads INT 10
remote.log.storage.manager.class.name STRING -
remote.log.storage.manager.class.path STRING -
remote.log.storage.manager.impl.prefix STRING rsm.config.
remote.log.storage.system.enable BOOLEAN false
replica.alter.log.dirs.io.max.bytes.per.second LONG 9223372036854775807
replica.fetch.backoff.ms INT 1000
replica.fetch.max.bytes INT 1048576
replica.fetch.min.bytes INT 1
replica.fetch.response.max.bytes INT 10485760
replica.fetch.wait.max.ms INT 500
replica.high.watermark.checkpoint.interval.ms LONG 5000
replica.lag.time.max.ms LONG 30000
replica.selector.class STRING -
replica.socket.receive.buffer.bytes INT 65536
replica.socket.timeout.ms INT 30000
replication.quota.window.num INT 11
replication.quota.window.size.seconds INT 1
request.timeout.ms INT 30000
sasl.client.callback.handler.class CLASS -
sasl.enabled.mechanisms LIST GSSAPI
sasl.jaas.config PASSWORD -
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit
sasl.kerberos.min.time.before.relogin LONG 60000
sasl.kerberos.principal.to.local.rules LIST DEFAULT
sasl.kerberos.service.name STRING -
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8
sasl.login.callback.handler.class CLASS -
sasl.login.class CLASS -
sasl.login.connect.timeout.ms INT -
sasl.login.read.timeout.ms INT -
sasl.login.refresh.buffer.seconds SHORT 300
sasl.login.refresh.min.period.seconds SHORT 60
sasl.login.refresh.window.factor DOUBLE 0.8
sasl.login.refresh.window.jitter DOUBLE 0.05
sasl.login.retry.backoff.max.ms LONG 10000
sasl.login.retry.backoff.ms LONG 100
sasl.mechanism.controller.protocol STRING GSSAPI
sasl.mechanism.inter.broker.protocol STRING GSSAPI
sasl.oauthbearer.assertion.algorithm STRING RS256
sasl.oauthbearer.assertion.claim.aud STRING -
sasl.oauthbearer.assertion.claim.exp.seconds INT 300
sasl.oauthbearer.assertion.claim.iss STRING -
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60
sasl.oauthbearer.assertion.claim.sub STRING -
sasl.oauthbearer.assertion.file STRING -
sasl.oauthbearer.assertion.private.key.file STRING -
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD -
sasl.oauthbearer.assertion.template.file STRING -
sasl.oauthbearer.client.credentials.client.id STRING -
sasl.oauthbearer.client.credentials.client.secret PASSWORD -
sasl.oauthbearer.clock.skew.seconds INT 30
sasl.oauthbearer.expected.audience LIST ""
sasl.oauthbearer.expected.issuer STRING -
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100
sasl.oauthbearer.jwks.endpoint.url STRING -
sasl.oauthbearer.jwt.retriever.class CLASS -
sasl.oauthbearer.jwt.validator.class CLASS -
sasl.oauthbearer.scope STRING -
sasl.oauthbearer.scope.claim.name STRING scope
sasl.oauthbearer.sub.claim.name STRING sub
sasl.oauthbearer.token.endpoint.url STRING -
sasl.server.callback.handler.class CLASS -
sasl.server.max.receive.size INT 524288
security.inter.broker.protocol STRING PLAINTEXT
security.providers STRING -
share.coordinator.append.linger.ms INT -1
share.coordinator.cached.buffer.max.bytes INT 1048588
share.coordinator.cold.partition.snapshot.interval.ms INT 300000
share.coordinator.load.buffer.size INT 5242880
share.coordinator.snapshot.update.records.per.snapshot INT 500
share.coordinator.state.topic.compression.codec INT 0
share.coordinator.state.topic.min.isr SHORT 2
share.coordinator.state.topic.num.partitions INT 50
share.coordinator.state.topic.prune.interval.ms INT 300000
share.coordinator.state.topic.replication.factor SHORT 3
share.coordinator.state.topic.segment.bytes INT 104857600
share.coordinator.threads INT 1
share.coordinator.write.timeout.ms INT 5000
share.fetch.purgatory.purge.interval.requests INT 1000
slow.request.trace.ms LONG -1
socket.connection.setup.timeout.max.ms LONG 30000
socket.connection.setup.timeout.ms LONG 10000
socket.listen.backlog.size INT 50
socket.receive.buffer.bytes INT 102400
socket.request.max.bytes INT 104857600
socket.send.buffer.bytes INT 102400
ssl.allow.dn.changes BOOLEAN false
ssl.allow.san.changes BOOLEAN false
ssl.cipher.suites LIST ""
ssl.client.auth STRING none
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING https
ssl.engine.factory.class CLASS -
ssl.key.password PASSWORD -
ssl.keymanager.algorithm STRING SunX509
ssl.keystore.certificate.chain PASSWORD -
ssl.keystore.key PASSWORD -
ssl.keystore.location STRING -
ssl.keystore.password PASSWORD -
ssl.keystore.type STRING JKS
ssl.principal.mapping.rules STRING DEFAULT
ssl.protocol STRING TLSv1.3
ssl.provider STRING -
ssl.secure.random.implementation STRING -
ssl.trustmanager.algorithm STRING PKIX
ssl.truststore.certificates PASSWORD -
ssl.truststore.location STRING -
ssl.truststore.password PASSWORD -
ssl.truststore.type STRING JKS
super.users STRING ""
telemetry.max.bytes INT 1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000
transaction.max.timeout.ms INT 900000
transaction.partition.verification.enable BOOLEAN true
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000
transaction.state.log.load.buffer.size INT 5242880
transaction.state.log.min.isr INT 2
transaction.state.log.num.partitions INT 50
transaction.state.log.replication.factor SHORT 3
transaction.state.log.segment.bytes INT 104857600
transaction.two.phase.commit.enable BOOLEAN false
transactional.id.expiration.ms INT 604800000
unclean.leader.election.enable BOOLEAN false
"""  # noqa: E501 - one row is longer than a line


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """One row: `default` is the text in a properties file, None for null."""

    name: str
    type: str
    default: str | None


def _parse(line: str) -> KnownSetting:
    name, type_name, default = line.split(maxsplit=2)
    text = None if default == "-" else default.strip('"')
    return KnownSetting(name, type_name, text)


KNOWN_SETTINGS = {setting.name: setting for setting in map(_parse, _TABLE.split("\n")[1:-1])}
"""All known settings, by name."""


INTERNAL_SETTINGS: Final = frozenset(
    {
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.persister.class.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)
"""The settings that Apache Kafka 4.3 calls internal and that have no meaning here.

They tune parts of Kafka's own, or are there for its tests. A configuration file made for Kafka may
name them: such a file is not refused, and the log says that they do nothing.
"""
