"""The documentation of each setting in one sentence, for DescribeConfigs (KIP-569).

The settings are those of brokers, and those of groups and of subscriptions to clients' metrics that
no broker has. Topics have theirs in `broker.log.topic_settings`.

A row is a name and its sentence. The module is imported with the first such request.
"""

_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms The longest pause before a partition is added to a transaction again.
add.partitions.to.txn.retry.backoff.ms The first pause before a partition is added to a transaction again.
advertised.listeners The addresses that clients connect to, if they differ from the listeners.
allow.everyone.if.no.acl.found Whether a resource that no access rule names is open to everyone.
alter.config.policy.class.name A class that may refuse changes of settings.
alter.log.dirs.replication.quota.window.num The number of samples that the quota of moves between log directories keeps.
alter.log.dirs.replication.quota.window.size.seconds The time that one sample of that quota lasts.
authorizer.class.name The class that authorizes requests; empty allows all requests.
auto.create.topics.enable Whether a topic is created when a client asks for one that does not exist.
auto.leader.rebalance.enable Whether the preferred replicas become leaders again automatically.
background.threads The number of threads for background tasks.
broker.heartbeat.interval.ms The time between two heartbeats of a broker to the controller.
broker.id The older name of node.id.
broker.rack The rack of this broker; the replicas of a partition are spread over racks.
broker.session.timeout.ms The controller fences a broker that sends no heartbeat for this time.
client.quota.callback.class A class that decides on the quotas of clients.
client.telemetry.otlp.endpoint The URL that the metrics of clients are sent to, as http://localhost:4318/v1/metrics.
compression.gzip.level The level of gzip if the broker compresses.
compression.lz4.level The level of lz4 if the broker compresses.
compression.type The codec that batches are stored with; producer keeps the producer's codec.
compression.zstd.level The level of zstd if the broker compresses.
config.providers The names of the sources for placeholders in settings.
connection.failed.authentication.delay.ms The time by which the answer to a failed authentication is delayed.
connections.max.idle.ms A connection without a request for this time is closed.
connections.max.reauth.ms A client must authenticate again after this time; 0 turns this off.
controlled.shutdown.enable Whether a stopping broker hands over its leaderships first.
controller.fast.failure.detection.enable Whether a node whose port refuses connections counts as failed at once.
controller.listener.names The listeners for controllers, not for clients.
controller.quorum.append.linger.ms The time that the quorum's leader gathers records before it writes them.
controller.quorum.auto.join.enable Whether a new controller asks to become a voter by itself.
controller.quorum.bootstrap.servers The addresses of controllers, from which a node learns the voters.
controller.quorum.election.backoff.max.ms The longest random pause after a lost election.
controller.quorum.election.timeout.ms The time that a candidate waits for votes before the next election.
controller.quorum.fetch.max.bytes The most bytes of the metadata log in one answer.
controller.quorum.fetch.snapshot.max.bytes The most bytes of a metadata snapshot in one answer.
controller.quorum.fetch.timeout.ms A voter starts an election after this time without an answer from the leader.
controller.quorum.request.timeout.ms The time that a node of the quorum waits for an answer.
controller.quorum.retry.backoff.ms The pause before a node of the quorum retries a request.
controller.quorum.voters The voters of the quorum, each as id@host:port.
controller.quota.window.num The number of samples that the quota of metadata changes keeps.
controller.quota.window.size.seconds The time that one sample of the quota of metadata changes lasts.
controller.socket.timeout.ms The time that a request to the controller may take.
cordoned.log.dirs Log directories in which no new partition is placed.
create.topic.policy.class.name A class that may refuse new topics.
default.replication.factor The replication factor of a topic that is created without one.
delegation.token.expiry.check.interval.ms The time between two searches for expired delegation tokens.
delegation.token.expiry.time.ms The lifetime of a delegation token without a renewal.
delegation.token.max.lifetime.ms A delegation token cannot be renewed after this time.
delegation.token.secret.key The secret that creates and verifies delegation tokens.
delete.records.purgatory.purge.interval.requests The number of requests after which completed waits for deleted records are removed.
delete.topic.enable Whether topics may be deleted.
early.start.listeners The listeners that open before the node is ready.
fetch.max.bytes The most bytes in one answer to a Fetch.
fetch.purgatory.purge.interval.requests The number of requests after which completed waits for records are removed.
follower.fetch.last.tiered.offset.enable Whether a new follower starts at the last offset in remote storage.
follower.replication.throttled.rate The bytes per second that this broker fetches for throttled replicas.
group.consumer.assignment.interval.ms The least time between two assignments of a consumer group.
group.consumer.assignors The assignors of consumer groups; the first one is the default.
group.consumer.heartbeat.interval.ms The interval at which a member of a consumer group sends a heartbeat.
group.consumer.max.assignment.interval.ms The largest assignment interval a consumer group may set.
group.consumer.max.heartbeat.interval.ms The largest heartbeat interval a consumer group may set.
group.consumer.max.session.timeout.ms The largest session timeout a consumer group may set.
group.consumer.max.size The number of members that a consumer group may have.
group.consumer.migration.policy The directions in which groups may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms The smallest assignment interval a consumer group may set.
group.consumer.min.heartbeat.interval.ms The smallest heartbeat interval a consumer group may set.
group.consumer.min.session.timeout.ms The smallest session timeout a consumer group may set.
group.consumer.session.timeout.ms A member of a consumer group that sends no heartbeat for this time is removed.
group.coordinator.append.linger.ms The time that the group coordinator gathers records before it writes them.
group.coordinator.background.threads The number of threads that compute assignments and similar tasks for groups.
group.coordinator.cached.buffer.max.bytes The largest buffer the group coordinator keeps for its next write.
group.coordinator.rebalance.protocols The enabled group protocols.
group.coordinator.threads The number of threads that the group coordinator has.
group.initial.rebalance.delay.ms The time that an empty group waits for more members before its first rebalance; at least 60 ms.
group.max.session.timeout.ms The largest session timeout a member of a classic group may ask for.
group.max.size The number of members that a classic group may have.
group.min.session.timeout.ms The smallest session timeout a member of a classic group may ask for.
group.share.assignment.interval.ms The least time between two assignments of a share group.
group.share.assignors The assignors of share groups.
group.share.delivery.count.limit The number of times that a share group tries to deliver one record.
group.share.heartbeat.interval.ms The interval at which a member of a share group sends a heartbeat.
group.share.initialize.retry.interval.ms The time after which the initialisation of share state is tried again.
group.share.max.assignment.interval.ms The largest assignment interval a share group may set.
group.share.max.delivery.count.limit The largest number of deliveries a share group may set.
group.share.max.heartbeat.interval.ms The largest heartbeat interval a share group may set.
group.share.max.partition.max.record.locks The largest number of locked records a share group may set.
group.share.max.record.lock.duration.ms The longest lock on a record a share group may set.
group.share.max.session.timeout.ms The largest session timeout a share group may set.
group.share.max.share.sessions The number of share sessions that a broker keeps.
group.share.max.size The number of members that a share group may have.
group.share.min.assignment.interval.ms The smallest assignment interval a share group may set.
group.share.min.delivery.count.limit The smallest number of deliveries a share group may set.
group.share.min.heartbeat.interval.ms The smallest heartbeat interval a share group may set.
group.share.min.partition.max.record.locks The smallest number of locked records a share group may set.
group.share.min.record.lock.duration.ms The shortest lock on a record a share group may set.
group.share.min.session.timeout.ms The smallest session timeout a share group may set.
group.share.partition.max.record.locks The number of records of a partition that may be locked at a time.
group.share.record.lock.duration.ms The time that a delivered record stays locked.
group.share.session.timeout.ms A member of a share group that sends no heartbeat for this time is removed.
group.streams.assignment.interval.ms The least time between two assignments of a streams group.
group.streams.heartbeat.interval.ms The interval at which a member of a streams group sends a heartbeat.
group.streams.initial.rebalance.delay.ms The time that an empty streams group waits for more members.
group.streams.max.assignment.interval.ms The largest assignment interval a streams group may set.
group.streams.max.heartbeat.interval.ms The largest heartbeat interval a streams group may set.
group.streams.max.session.timeout.ms The largest session timeout a streams group may set.
group.streams.max.size The number of members that a streams group may have.
group.streams.max.standby.replicas The largest number of standby replicas a streams group may set.
group.streams.min.assignment.interval.ms The smallest assignment interval a streams group may set.
group.streams.min.heartbeat.interval.ms The smallest heartbeat interval a streams group may set.
group.streams.min.session.timeout.ms The smallest session timeout a streams group may set.
group.streams.num.standby.replicas The number of standby copies of its state that a streams group keeps.
group.streams.session.timeout.ms A member of a streams group that sends no heartbeat for this time is removed.
http.allowed.hosts Names that clients reach `http.listener` by besides this machine's and those of its listeners; *: all.
http.config A file that says how the health pages are served: ssl.keystore.location, authentication.method.
http.listener The address of the health pages and metrics over HTTP; empty turns them off.
http.neighbours Servers that the page at / links to: name=http://..., with commas between.
initial.broker.registration.timeout.ms The time that a starting broker tries to register with the controller.
inter.broker.listener.name The listener between brokers.
interval.ms The time between two sets of metrics that a client pushes.
kafka.metrics.polling.interval.secs The interval of the metrics reporters below.
kafka.metrics.reporters Classes that report the older metrics.
leader.imbalance.check.interval.seconds The interval of the check for preferred leader elections.
leader.replication.throttled.rate The bytes per second that this broker sends to throttled replicas.
listener.security.protocol.map The security protocol of each listener.
listeners The names and addresses of this node's listeners.
log.cleaner.backoff.ms The time that the cleaner sleeps when there is nothing to compact.
log.cleaner.dedupe.buffer.size The memory for the keys of a compaction, all threads together.
log.cleaner.delete.retention.ms The time that a compacted topic keeps its tombstones.
log.cleaner.enable Whether the log cleaner compacts topics.
log.cleaner.io.buffer.load.factor The part of the cleaner's table of keys that may be used.
log.cleaner.io.buffer.size The memory for reading and writing while compacting, all threads together.
log.cleaner.io.max.bytes.per.second The bytes per second that the cleaner may read and write.
log.cleaner.max.compaction.lag.ms The longest time before a record is compacted.
log.cleaner.min.cleanable.ratio The share of uncleaned bytes above which a log is compacted.
log.cleaner.min.compaction.lag.ms The shortest time before a record is compacted.
log.cleaner.threads The number of threads that compact.
log.cleanup.policy Old records are deleted, or compacted by key.
log.dir The data directory, if log.dirs is not set.
log.dir.failure.timeout.ms The time that a broker runs with a failed directory that the controller does not know of.
log.dirs The data directories.
log.flush.interval.messages A log is synced to disk after this number of records.
log.flush.interval.ms A log is synced to disk when its oldest unsynced record has this age.
log.flush.offset.checkpoint.interval.ms The interval of writing the recovery points.
log.flush.scheduler.interval.ms The interval of the check for logs to sync.
log.flush.start.offset.checkpoint.interval.ms The interval of writing the log start offsets.
log.index.interval.bytes The bytes of log between two entries of an offset index.
log.index.size.max.bytes The largest size of an index file.
log.local.retention.bytes The bytes of a tiered partition that are kept on local disk.
log.local.retention.ms The time for which records of a tiered partition are kept on local disk.
log.message.timestamp.after.max.ms The time by which a record's timestamp may be ahead of the broker's clock.
log.message.timestamp.before.max.ms The time by which a record's timestamp may be behind the broker's clock.
log.message.timestamp.type Whether records have the timestamp of the producer or that of the append.
log.preallocate Whether a new segment's file gets its full size at once.
log.retention.bytes The size above which the oldest segments of a partition are deleted.
log.retention.check.interval.ms The interval of the check for segments to delete.
log.retention.hours The hours for which records are kept; log.retention.minutes and log.retention.ms take precedence.
log.retention.minutes The minutes for which records are kept; log.retention.ms takes precedence.
log.retention.ms The milliseconds for which records are kept; -1 for no limit.
log.roll.hours The age in hours at which a segment is rolled; log.roll.ms takes precedence.
log.roll.jitter.hours The largest random time in hours by which a segment is rolled earlier.
log.roll.jitter.ms The largest random time in milliseconds by which a segment is rolled earlier.
log.roll.ms The age in milliseconds at which a segment is rolled.
log.segment.bytes The size at which a segment is rolled.
log.segment.delete.delay.ms The time that a deleted file stays on disk, for present readers.
match The clients that push, as name=pattern with commas between; empty is all of them.
max.connection.creation.rate The number of connections per second that are accepted.
max.connections The number of client connections that may be open.
max.connections.per.ip The number of connections that one address may have open.
max.connections.per.ip.overrides Other limits for some addresses, each as address:count.
max.incremental.fetch.session.cache.slots The number of fetch sessions that are kept.
max.request.partition.size.limit The most partitions in one page of described topics.
message.max.bytes The largest accepted record batch.
metadata.log.dir The directory of the metadata log; by default the first log directory.
metadata.log.max.record.bytes.between.snapshots The committed bytes of metadata after which a snapshot is taken.
metadata.log.max.snapshot.interval.ms The time after which a snapshot of changed metadata is taken.
metadata.log.segment.bytes The size at which a segment of the metadata log is rolled.
metadata.log.segment.ms The age at which a segment of the metadata log is rolled.
metadata.max.idle.interval.ms The interval at which an idle quorum writes an empty record.
metadata.max.retention.bytes The size of the metadata log and its snapshots above which old ones are deleted.
metadata.max.retention.ms The age at which segments and snapshots of the metadata log are deleted.
metric.reporters Classes that report metrics.
metrics The beginnings of the names of the metrics that a client pushes; empty is none.
metrics.num.samples The number of samples that a metric is computed from.
metrics.recording.level The level of detail of metrics.
metrics.sample.window.ms The time that one sample of a metric lasts.
min.insync.replicas A write with acks=all is refused if fewer replicas are in sync.
node.id The id of this node, unique in the cluster.
num.io.threads The number of threads that handle requests.
num.network.threads The number of threads that read from and write to sockets.
num.partitions The number of partitions of a topic that is created without one.
num.recovery.threads.per.data.dir The number of threads that check a directory's logs at the start.
num.replica.alter.log.dirs.threads The number of threads that move partitions between directories.
num.replica.fetchers The number of connections that fetch from each other broker.
offset.metadata.max.bytes The longest metadata that a consumer may store with an offset.
offsets.commit.timeout.ms The time that a commit waits for its replicas.
offsets.load.buffer.size The bytes per read while a group's offsets are loaded.
offsets.retention.check.interval.ms The interval of the check for expired offsets.
offsets.retention.minutes The minutes for which the offsets of an empty group are kept.
offsets.topic.compression.codec The codec of the offsets topic; 0 for none.
offsets.topic.num.partitions The number of partitions of the offsets topic.
offsets.topic.replication.factor The replication factor of the offsets topic.
offsets.topic.segment.bytes The size at which a segment of the offsets topic is rolled.
org.apache.kafka.sasl.oauthbearer.allowed.urls The URLs that keys of OAuth issuers may be read from.
principal.builder.class The class that builds the principal of an authenticated connection.
process.roles The roles of this node: broker, controller, or both.
producer.id.expiration.ms The time for which a producer that writes nothing is remembered.
producer.purgatory.purge.interval.requests The number of requests after which completed waits for replicas are removed.
queued.max.request.bytes The number of bytes of requests that may wait to be handled.
queued.max.requests The number of requests that may wait to be handled.
quota.window.num The number of samples that a client's quota keeps.
quota.window.size.seconds The time that one sample of a client's quota lasts.
remote.fetch.max.wait.ms The time that a Fetch waits for remote storage.
remote.list.offsets.request.timeout.ms The time that ListOffsets waits for remote storage.
remote.log.index.file.cache.total.size.bytes The bytes that the indexes of remote segments may take on disk.
remote.log.manager.copier.thread.pool.size The number of threads that copy segments to remote storage.
remote.log.manager.copy.max.bytes.per.second The bytes per second that may be copied to remote storage.
remote.log.manager.copy.quota.window.num The number of samples that the quota of those copies keeps.
remote.log.manager.copy.quota.window.size.seconds The time that one sample of the quota of those copies lasts.
remote.log.manager.expiration.thread.pool.size The number of threads that delete expired segments in remote storage.
remote.log.manager.fetch.max.bytes.per.second The bytes per second that may be read from remote storage.
remote.log.manager.fetch.quota.window.num The number of samples that the quota of those reads keeps.
remote.log.manager.fetch.quota.window.size.seconds The time that one sample of the quota of those reads lasts.
remote.log.manager.follower.thread.pool.size The number of threads that keep followers of tiered partitions up to date.
remote.log.manager.task.interval.ms The interval of the tasks of remote storage.
remote.log.manager.thread.pool.size The number of threads for the tasks of remote storage.
remote.log.metadata.custom.metadata.max.bytes The most custom metadata that a storage plug-in may keep for a segment.
remote.log.metadata.manager.class.name The class that keeps the metadata of remote segments.
remote.log.metadata.manager.class.path The class path of the remote log metadata manager.
remote.log.metadata.manager.impl.prefix The prefix of the remote log metadata manager's own settings.
remote.log.metadata.manager.listener.name The listener that the remote log metadata manager uses.
remote.log.reader.max.pending.tasks The number of reads of remote storage that may wait.
remote.log.reader.threads The number of threads that read from remote storage.
remote.log.storage.manager.class.name The class that copies segments to remote storage and back.
remote.log.storage.manager.class.path The class path of the remote storage manager.
remote.log.storage.manager.impl.prefix The prefix of the remote storage manager's own settings.
remote.log.storage.system.enable Whether topics may use remote storage.
replica.alter.log.dirs.io.max.bytes.per.second The bytes per second that are copied between the log directories.
replica.fetch.backoff.ms The time that a follower waits after a failed fetch of a partition.
replica.fetch.max.bytes The most bytes of one partition that a follower fetches at once.
replica.fetch.min.bytes The fewest bytes in an answer to a follower, before the wait ends.
replica.fetch.response.max.bytes The most bytes in one answer to a follower.
replica.fetch.wait.max.ms The longest wait of a follower's Fetch for the minimum of bytes.
replica.high.watermark.checkpoint.interval.ms The interval of writing the high watermarks.
replica.lag.time.max.ms A follower that has not caught up for this time is out of sync.
replica.selector.class The class that selects the replica that a consumer reads from.
replica.socket.receive.buffer.bytes The receive buffer of a follower's sockets.
replica.socket.timeout.ms The time that a follower's request may take.
replication.quota.window.num The number of samples that the replication quota keeps.
replication.quota.window.size.seconds The time that one sample of the replication quota lasts.
request.timeout.ms The time that this node waits for an answer from another node.
sasl.client.callback.handler.class The class a SASL client gets its credentials from.
sasl.enabled.mechanisms The SASL mechanisms clients may use.
sasl.jaas.config The login modules of a listener's mechanism, as in a JAAS file.
sasl.kerberos.kinit.cmd The path of kinit.
sasl.kerberos.min.time.before.relogin The least time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules Rules that make short names of Kerberos principals.
sasl.kerberos.service.name The Kerberos service name of the brokers.
sasl.kerberos.ticket.renew.jitter The random share of the time until a ticket is renewed.
sasl.kerberos.ticket.renew.window.factor The share of a ticket's lifetime after which it is renewed.
sasl.login.callback.handler.class The class that handles the callbacks of a login.
sasl.login.class The class that logs in.
sasl.login.connect.timeout.ms The time that connecting to a login provider may take.
sasl.login.read.timeout.ms The time that reading from a login provider may take.
sasl.login.refresh.buffer.seconds The shortest time before its expiry at which a credential is renewed.
sasl.login.refresh.min.period.seconds The least time between two renewals of a credential.
sasl.login.refresh.window.factor The share of a credential's lifetime after which it is renewed.
sasl.login.refresh.window.jitter The random share of the time until a credential is renewed.
sasl.login.retry.backoff.max.ms The longest pause before a login is retried.
sasl.login.retry.backoff.ms The first pause before a login is retried.
sasl.mechanism.controller.protocol The SASL mechanism for connections to controllers.
sasl.mechanism.inter.broker.protocol The SASL mechanism for connections between brokers.
sasl.oauthbearer.assertion.algorithm The algorithm that client assertions are signed with.
sasl.oauthbearer.assertion.claim.aud The audience claim of a client assertion.
sasl.oauthbearer.assertion.claim.exp.seconds The lifetime of a client assertion.
sasl.oauthbearer.assertion.claim.iss The issuer claim of a client assertion.
sasl.oauthbearer.assertion.claim.jti.include Whether a client assertion has a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds The time before its creation at which a client assertion becomes valid.
sasl.oauthbearer.assertion.claim.sub The subject claim of a client assertion.
sasl.oauthbearer.assertion.file A file with a complete client assertion.
sasl.oauthbearer.assertion.private.key.file The file of the key that signs client assertions.
sasl.oauthbearer.assertion.private.key.passphrase The passphrase of that key.
sasl.oauthbearer.assertion.template.file A file with claims and headers for client assertions.
sasl.oauthbearer.client.credentials.client.id The client id of the client credentials grant.
sasl.oauthbearer.client.credentials.client.secret The client secret of the client credentials grant.
sasl.oauthbearer.clock.skew.seconds The allowed difference between the clocks of issuer and broker.
sasl.oauthbearer.expected.audience The accepted audiences of a token.
sasl.oauthbearer.expected.issuer The accepted issuer of a token.
sasl.oauthbearer.jwks.endpoint.refresh.ms The interval at which the issuer's keys are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms The longest pause before fetching the issuer's keys is retried.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms The first pause before fetching the issuer's keys is retried.
sasl.oauthbearer.jwks.endpoint.url The URL of the issuer's keys.
sasl.oauthbearer.jwt.retriever.class The class that gets tokens.
sasl.oauthbearer.jwt.validator.class The class that checks tokens.
sasl.oauthbearer.scope The scope of a token request.
sasl.oauthbearer.scope.claim.name The claim with a token's scopes.
sasl.oauthbearer.sub.claim.name The claim with a token's subject.
sasl.oauthbearer.token.endpoint.url The URL of token requests.
sasl.server.callback.handler.class The class that checks the credentials of SASL clients.
sasl.server.max.receive.size The largest message before a client has authenticated.
security.inter.broker.protocol The security protocol between brokers, if inter.broker.listener.name is not set.
security.providers Classes that add security algorithms.
share.auto.offset.reset The place where a share group begins: latest, earliest, or by_duration:PT1H, an hour back.
share.coordinator.append.linger.ms The time that the share coordinator gathers records before it writes them.
share.coordinator.cached.buffer.max.bytes The largest buffer the share coordinator keeps for its next write.
share.coordinator.cold.partition.snapshot.interval.ms The interval at which unchanged share state is written again.
share.coordinator.load.buffer.size The bytes per read while share state is loaded.
share.coordinator.snapshot.update.records.per.snapshot The number of updates after which a snapshot of share state is written.
share.coordinator.state.topic.compression.codec The codec of the share state topic; 0 for none.
share.coordinator.state.topic.min.isr The min.insync.replicas of the share state topic.
share.coordinator.state.topic.num.partitions The number of partitions of the share state topic.
share.coordinator.state.topic.prune.interval.ms The interval at which unneeded records of the share state topic are deleted.
share.coordinator.state.topic.replication.factor The replication factor of the share state topic.
share.coordinator.state.topic.segment.bytes The size at which a segment of the share state topic is rolled.
share.coordinator.threads The number of threads that the share coordinator has.
share.coordinator.write.timeout.ms The time that a write of the share coordinator waits for its replicas.
share.fetch.purgatory.purge.interval.requests The number of requests after which completed share fetches are removed.
share.isolation.level Whether a share group also reads records of transactions that are not committed.
share.renew.acknowledge.enable Whether a member of a share group may renew the lock of a record.
slow.request.trace.ms A request that takes longer becomes a span of OpenTelemetry; -1: none does.
socket.connection.setup.timeout.max.ms The longest timeout of opening a connection, after failures.
socket.connection.setup.timeout.ms The first timeout of opening a connection.
socket.listen.backlog.size The number of connections that may wait to be accepted.
socket.receive.buffer.bytes The receive buffer of a client's socket; -1 for the system's default.
socket.request.max.bytes The largest accepted request.
socket.send.buffer.bytes The send buffer of a client's socket; -1 for the system's default.
ssl.allow.dn.changes Whether a new certificate may have a different distinguished name.
ssl.allow.san.changes Whether a new certificate may have different alternative names.
ssl.cipher.suites The cipher suites that may be used; all by default.
ssl.client.auth Whether clients must, may, or need not present a certificate.
ssl.enabled.protocols The TLS versions that may be used.
ssl.endpoint.identification.algorithm The algorithm that checks a certificate against the host name.
ssl.engine.factory.class The class that creates TLS engines.
ssl.key.password The password of the private key.
ssl.keymanager.algorithm The algorithm of the key manager.
ssl.keystore.certificate.chain The node's certificates, as PEM.
ssl.keystore.key The node's private key, as PEM.
ssl.keystore.location The file with the node's key and certificates.
ssl.keystore.password The password of that file.
ssl.keystore.type The format of that file.
ssl.principal.mapping.rules The rules that map distinguished names to user names.
ssl.protocol The preferred TLS version.
ssl.provider The security provider of TLS.
ssl.secure.random.implementation The random source of TLS.
ssl.trustmanager.algorithm The algorithm of the trust manager.
ssl.truststore.certificates The certificates that are trusted, as PEM.
ssl.truststore.location The file with the certificates that are trusted.
ssl.truststore.password The password of the file with trusted certificates.
ssl.truststore.type The format of the file with trusted certificates.
super.users The principals that may do everything, separated by semicolons, as User:admin.
telemetry.max.bytes The largest set of metrics that a client may push.
transaction.abort.timed.out.transaction.cleanup.interval.ms The interval of the check for transactions that have timed out.
transaction.max.timeout.ms The longest transaction timeout that a producer may request.
transaction.partition.verification.enable Whether a partition's leader verifies that the partition belongs to the transaction before an append.
transaction.remove.expired.transaction.cleanup.interval.ms The interval at which expired transactional ids are removed.
transaction.state.log.load.buffer.size The bytes per read while transactions are loaded.
transaction.state.log.min.isr The min.insync.replicas of the transaction state topic.
transaction.state.log.num.partitions The number of partitions of the transaction state topic.
transaction.state.log.replication.factor The replication factor of the transaction state topic.
transaction.state.log.segment.bytes The size at which a segment of the transaction state topic is rolled.
transaction.two.phase.commit.enable Whether an external coordinator may decide on a prepared transaction.
transactional.id.expiration.ms The time for which an unused transactional id is kept.
unclean.leader.election.enable Whether a replica that is not in sync may become the leader if no other one is available.
"""  # noqa: E501 - a row is as long as its sentence

DOCUMENTATION = dict(line.split(" ", 1) for line in _TABLE.split("\n")[1:-1])
"""The sentence of each setting, by its name."""
