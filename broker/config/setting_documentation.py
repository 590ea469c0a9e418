"""What each broker setting is for, in one sentence: DescribeConfigs tells it to who asks (KIP-569).

A row is a name and its sentence. Imported with the first such request only.
"""

_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms The longest pause before a partition is added to a transaction again.
add.partitions.to.txn.retry.backoff.ms The first pause before a partition is added to a transaction again.
advertised.listeners The addresses clients are told to connect to, where they differ from the listeners.
alter.config.policy.class.name A class that may refuse changes of settings.
alter.log.dirs.replication.quota.window.num How many samples the quota of moves between log directories keeps.
alter.log.dirs.replication.quota.window.size.seconds How long one sample of that quota lasts.
authorizer.class.name The class that decides who may do what; empty lets everybody do everything.
auto.create.topics.enable Whether a topic is created when a client asks for one that is not there.
auto.leader.rebalance.enable Whether leaderships go back to the preferred replicas by themselves.
background.threads How many threads do the work nobody waits for.
broker.heartbeat.interval.ms The time between two heartbeats of a broker to the controller.
broker.id The older name of node.id.
broker.rack Where this broker stands, so that replicas are spread over racks.
broker.session.timeout.ms How long a broker may be silent before the controller fences it.
client.quota.callback.class A class that decides on the quotas of clients.
compression.gzip.level How hard gzip tries where the broker compresses.
compression.lz4.level How hard lz4 tries where the broker compresses.
compression.type The codec batches are stored with; producer keeps what the producer chose.
compression.zstd.level How hard zstd tries where the broker compresses.
config.providers Names of the sources that placeholders in settings are filled from.
connection.failed.authentication.delay.ms How long a connection that failed to authenticate is kept waiting.
connections.max.idle.ms A connection without a request for so long is closed.
connections.max.reauth.ms How long a client may go on before it has to authenticate again; 0 for ever.
controlled.shutdown.enable Whether a stopping broker hands over what it leads before it goes.
controller.fast.failure.detection.enable Whether a node whose port refuses connections counts as gone at once.
controller.listener.names The listeners that belong to the controller, not to clients.
controller.quorum.append.linger.ms How long the quorum's leader gathers records before it writes them.
controller.quorum.auto.join.enable Whether a new controller asks to become a voter by itself.
controller.quorum.bootstrap.servers Addresses of controllers, to learn who votes.
controller.quorum.election.backoff.max.ms The longest random pause before a lost election is tried again.
controller.quorum.election.timeout.ms How long a voter waits for votes before it asks anew.
controller.quorum.fetch.max.bytes The most bytes of the metadata log that one answer carries.
controller.quorum.fetch.snapshot.max.bytes The most bytes of a metadata snapshot that one answer carries.
controller.quorum.fetch.timeout.ms How long a voter goes on with a leader it hears nothing of.
controller.quorum.request.timeout.ms How long a node of the quorum waits for an answer.
controller.quorum.retry.backoff.ms The pause before a node of the quorum asks again.
controller.quorum.voters The controllers that vote, each as id@host:port.
controller.quota.window.num How many samples the quota of metadata changes keeps.
controller.quota.window.size.seconds How long one sample of the quota of metadata changes lasts.
controller.socket.timeout.ms How long a request to the controller may take.
cordoned.log.dirs Log directories in which no new partition is placed.
create.topic.policy.class.name A class that may refuse new topics.
default.replication.factor How many replicas a topic gets that does not say.
delegation.token.expiry.check.interval.ms The time between two searches for expired delegation tokens.
delegation.token.expiry.time.ms How long a delegation token is good before it has to be renewed.
delegation.token.max.lifetime.ms After so long a delegation token cannot be renewed any more.
delegation.token.secret.key The secret that delegation tokens are made and checked with.
delete.records.purgatory.purge.interval.requests After how many requests finished waits for deleted records are dropped.
delete.topic.enable Whether topics may be deleted.
early.start.listeners Listeners that open before the node is ready.
fetch.max.bytes The most bytes one answer to a Fetch carries.
fetch.purgatory.purge.interval.requests After how many requests finished waits for records are dropped.
follower.fetch.last.tiered.offset.enable Whether a new follower begins at the last offset in remote storage.
follower.replication.throttled.rate How many bytes a second this broker fetches of throttled replicas.
group.consumer.assignment.interval.ms The least time between two assignments of a consumer group.
group.consumer.assignors The assignors a consumer group may choose from, the default first.
group.consumer.heartbeat.interval.ms How often a member of a consumer group sends a heartbeat.
group.consumer.max.assignment.interval.ms The largest assignment interval a consumer group may set.
group.consumer.max.heartbeat.interval.ms The largest heartbeat interval a consumer group may set.
group.consumer.max.session.timeout.ms The largest session timeout a consumer group may set.
group.consumer.max.size How many members a consumer group may have.
group.consumer.migration.policy Which way groups may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms The smallest assignment interval a consumer group may set.
group.consumer.min.heartbeat.interval.ms The smallest heartbeat interval a consumer group may set.
group.consumer.min.session.timeout.ms The smallest session timeout a consumer group may set.
group.consumer.session.timeout.ms A member of a consumer group that is silent for so long is removed.
group.coordinator.append.linger.ms How long the group coordinator gathers records before it writes them.
group.coordinator.background.threads How many threads compute assignments and the like for groups.
group.coordinator.cached.buffer.max.bytes The largest buffer the group coordinator keeps for its next write.
group.coordinator.rebalance.protocols The group protocols that are served.
group.coordinator.threads How many threads the group coordinator has.
group.initial.rebalance.delay.ms How long an empty group waits for more members before its first rebalance; at least 60 ms.
group.max.session.timeout.ms The largest session timeout a member of a classic group may ask for.
group.max.size How many members a classic group may have.
group.min.session.timeout.ms The smallest session timeout a member of a classic group may ask for.
group.share.assignment.interval.ms The least time between two assignments of a share group.
group.share.assignors The assignors of share groups.
group.share.delivery.count.limit How often a share group tries to deliver one record.
group.share.heartbeat.interval.ms How often a member of a share group sends a heartbeat.
group.share.max.assignment.interval.ms The largest assignment interval a share group may set.
group.share.max.delivery.count.limit The largest number of deliveries a share group may set.
group.share.max.heartbeat.interval.ms The largest heartbeat interval a share group may set.
group.share.max.partition.max.record.locks The largest number of locked records a share group may set.
group.share.max.record.lock.duration.ms The longest lock on a record a share group may set.
group.share.max.session.timeout.ms The largest session timeout a share group may set.
group.share.max.share.sessions How many share sessions a broker keeps.
group.share.max.size How many members a share group may have.
group.share.min.assignment.interval.ms The smallest assignment interval a share group may set.
group.share.min.delivery.count.limit The smallest number of deliveries a share group may set.
group.share.min.heartbeat.interval.ms The smallest heartbeat interval a share group may set.
group.share.min.partition.max.record.locks The smallest number of locked records a share group may set.
group.share.min.record.lock.duration.ms The shortest lock on a record a share group may set.
group.share.min.session.timeout.ms The smallest session timeout a share group may set.
group.share.partition.max.record.locks How many records of a partition may be locked at a time.
group.share.record.lock.duration.ms How long a record that was handed out stays locked.
group.share.session.timeout.ms A member of a share group that is silent for so long is removed.
group.streams.assignment.interval.ms The least time between two assignments of a streams group.
group.streams.heartbeat.interval.ms How often a member of a streams group sends a heartbeat.
group.streams.initial.rebalance.delay.ms How long an empty streams group waits for more members.
group.streams.max.assignment.interval.ms The largest assignment interval a streams group may set.
group.streams.max.heartbeat.interval.ms The largest heartbeat interval a streams group may set.
group.streams.max.session.timeout.ms The largest session timeout a streams group may set.
group.streams.max.size How many members a streams group may have.
group.streams.max.standby.replicas The largest number of standby replicas a streams group may set.
group.streams.min.assignment.interval.ms The smallest assignment interval a streams group may set.
group.streams.min.heartbeat.interval.ms The smallest heartbeat interval a streams group may set.
group.streams.min.session.timeout.ms The smallest session timeout a streams group may set.
group.streams.num.standby.replicas How many standby copies of its state a streams group keeps.
group.streams.session.timeout.ms A member of a streams group that is silent for so long is removed.
http.listener Where health pages and metrics are served over HTTP; empty for nowhere.
http.neighbours Servers that the page at / links to: name=http://..., with commas between.
initial.broker.registration.timeout.ms How long a starting broker tries to register with the controller.
inter.broker.listener.name The listener that brokers reach each other by.
kafka.metrics.polling.interval.secs How often the metrics reporters below are asked.
kafka.metrics.reporters Classes that report the older metrics.
leader.imbalance.check.interval.seconds The time between two looks for leaderships to give back.
leader.replication.throttled.rate How many bytes a second this broker sends of throttled replicas.
listener.security.protocol.map Which security protocol each listener speaks.
listeners The names and addresses this node listens on.
log.cleaner.backoff.ms How long the cleaner sleeps when there is nothing to compact.
log.cleaner.dedupe.buffer.size The memory for the keys of a compaction, all threads together.
log.cleaner.delete.retention.ms How long a compacted topic keeps its tombstones.
log.cleaner.enable Whether topics are compacted at all.
log.cleaner.io.buffer.load.factor How full the cleaner's table of keys may get.
log.cleaner.io.buffer.size The memory for reading and writing while compacting, all threads together.
log.cleaner.io.max.bytes.per.second How fast the cleaner may read and write.
log.cleaner.max.compaction.lag.ms A record is compacted at the latest after so long.
log.cleaner.min.cleanable.ratio A log is compacted when so much of it has not been.
log.cleaner.min.compaction.lag.ms A record is not compacted before it is so old.
log.cleaner.threads How many threads compact.
log.cleanup.policy What happens to old records: delete them, or compact by key.
log.dir Where the data lies, if log.dirs does not say.
log.dir.failure.timeout.ms How long a broker goes on with a failed directory the controller has not heard of.
log.dirs The directories that hold the data.
log.flush.interval.messages A log is synced to disk after so many records.
log.flush.interval.ms A log is synced to disk when its oldest unsynced record is so old.
log.flush.offset.checkpoint.interval.ms How often it is written down up to where logs are synced.
log.flush.scheduler.interval.ms How often it is looked for logs that have to be synced.
log.flush.start.offset.checkpoint.interval.ms How often it is written down where logs begin.
log.index.interval.bytes How many bytes lie between two entries of an offset index.
log.index.size.max.bytes The largest size of an index file.
log.local.retention.bytes How much of a tiered partition is kept on local disk.
log.local.retention.ms How long records of a tiered partition are kept on local disk.
log.message.timestamp.after.max.ms How far ahead of the broker's clock a record's time may be.
log.message.timestamp.before.max.ms How far behind the broker's clock a record's time may be.
log.message.timestamp.type Whether a record has the time of its producer or that of its append.
log.preallocate Whether a new segment's file gets its full size at once.
log.retention.bytes A partition that is larger loses its oldest segments.
log.retention.check.interval.ms How often it is looked for segments to delete.
log.retention.hours How many hours records are kept; minutes and milliseconds go before.
log.retention.minutes How many minutes records are kept; milliseconds go before.
log.retention.ms How many milliseconds records are kept; -1 for ever.
log.roll.hours After so many hours a new segment begins; milliseconds go before.
log.roll.jitter.hours By how many hours at most a new segment comes earlier, at random.
log.roll.jitter.ms By how many milliseconds at most a new segment comes earlier, at random.
log.roll.ms After so many milliseconds a new segment begins.
log.segment.bytes How large a segment may get before a new one begins.
log.segment.delete.delay.ms How long a deleted file stays, for those who still read it.
max.connection.creation.rate How many connections a second are accepted.
max.connections How many client connections may be open.
max.connections.per.ip How many connections one address may have open.
max.connections.per.ip.overrides Other limits for some addresses, each as address:count.
max.incremental.fetch.session.cache.slots How many fetch sessions are kept.
max.request.partition.size.limit How many partitions one page of described topics holds at most.
message.max.bytes The largest batch of records that is taken.
metadata.log.dir Where the metadata log lies; the first log directory if not said.
metadata.log.max.record.bytes.between.snapshots After so many bytes of metadata a snapshot is taken.
metadata.log.max.snapshot.interval.ms After so long a snapshot of changed metadata is taken.
metadata.log.segment.bytes How large a segment of the metadata log may get.
metadata.log.segment.ms How old a segment of the metadata log may get.
metadata.max.idle.interval.ms How often a quorum that is idle writes an empty record.
metadata.max.retention.bytes How large the metadata log and its snapshots may get before old ones go.
metadata.max.retention.ms How old metadata segments and snapshots may get before they go.
metric.reporters Classes that report metrics.
metrics.num.samples How many samples a metric is computed from.
metrics.recording.level How detailed metrics are.
metrics.sample.window.ms How long one sample of a metric lasts.
min.insync.replicas With fewer replicas in sync a write with acks=all is refused.
node.id The number of this node, one in the cluster.
num.io.threads How many threads handle requests.
num.network.threads How many threads read from and write to sockets.
num.partitions How many partitions a topic gets that does not say.
num.recovery.threads.per.data.dir How many threads check a directory's logs at the start.
num.replica.alter.log.dirs.threads How many threads move partitions between directories.
num.replica.fetchers How many connections fetch from each other broker.
offset.metadata.max.bytes The longest text a consumer may store beside an offset.
offsets.commit.timeout.ms How long a commit waits for its replicas.
offsets.load.buffer.size How much is read at a time while a group's offsets are loaded.
offsets.retention.check.interval.ms How often it is looked for offsets that have expired.
offsets.retention.minutes How long the offsets of an empty group are kept.
offsets.topic.compression.codec The codec of the topic of offsets; 0 is none.
offsets.topic.num.partitions How many partitions the topic of offsets has.
offsets.topic.replication.factor How many replicas the topic of offsets has.
offsets.topic.segment.bytes How large a segment of the topic of offsets may get.
principal.builder.class The class that makes a principal of an authenticated connection.
process.roles What this node is: broker, controller, or both.
producer.id.expiration.ms How long a producer that writes nothing is remembered.
producer.purgatory.purge.interval.requests After how many requests finished waits for replicas are dropped.
queued.max.request.bytes How many bytes of requests may wait to be handled.
queued.max.requests How many requests may wait to be handled.
quota.window.num How many samples a client's quota keeps.
quota.window.size.seconds How long one sample of a client's quota lasts.
remote.fetch.max.wait.ms How long a Fetch waits for remote storage.
remote.list.offsets.request.timeout.ms How long ListOffsets waits for remote storage.
remote.log.index.file.cache.total.size.bytes How much disk the indexes of remote segments may take.
remote.log.manager.copier.thread.pool.size How many threads copy segments to remote storage.
remote.log.manager.copy.max.bytes.per.second How fast segments may be copied to remote storage.
remote.log.manager.copy.quota.window.num How many samples the quota of those copies keeps.
remote.log.manager.copy.quota.window.size.seconds How long one sample of the quota of those copies lasts.
remote.log.manager.expiration.thread.pool.size How many threads delete expired segments in remote storage.
remote.log.manager.fetch.max.bytes.per.second How fast may be read from remote storage.
remote.log.manager.fetch.quota.window.num How many samples the quota of those reads keeps.
remote.log.manager.fetch.quota.window.size.seconds How long one sample of the quota of those reads lasts.
remote.log.manager.follower.thread.pool.size How many threads keep followers of tiered partitions up to date.
remote.log.manager.task.interval.ms How often remote storage is looked after.
remote.log.manager.thread.pool.size How many threads look after remote storage.
remote.log.metadata.custom.metadata.max.bytes How much a storage plug-in may note down for a segment.
remote.log.metadata.manager.class.name The class that keeps what is known of remote segments.
remote.log.metadata.manager.class.path Where that class is found.
remote.log.metadata.manager.impl.prefix What the names of that class's own settings begin with.
remote.log.metadata.manager.listener.name The listener by which that class reaches brokers.
remote.log.reader.max.pending.tasks How many reads of remote storage may wait.
remote.log.reader.threads How many threads read from remote storage.
remote.log.storage.manager.class.name The class that copies segments to remote storage and back.
remote.log.storage.manager.class.path Where the storage class is found.
remote.log.storage.manager.impl.prefix What the names of the storage class's own settings begin with.
remote.log.storage.system.enable Whether topics may use remote storage.
replica.alter.log.dirs.io.max.bytes.per.second How many bytes a second are copied between the log directories.
replica.fetch.backoff.ms How long a follower waits after a failed fetch of a partition.
replica.fetch.max.bytes The most bytes of one partition that a follower asks for.
replica.fetch.min.bytes The fewest bytes a follower wants an answer for.
replica.fetch.response.max.bytes The most bytes a follower wants in one answer.
replica.fetch.wait.max.ms How long a follower lets its leader wait for those bytes.
replica.high.watermark.checkpoint.interval.ms How often high watermarks are written down.
replica.lag.time.max.ms A follower that has not caught up for so long is out of sync.
replica.selector.class The class that chooses a replica near a consumer.
replica.socket.receive.buffer.bytes The receive buffer of a follower's sockets.
replica.socket.timeout.ms How long a follower's request may take.
replication.quota.window.num How many samples the replication quota keeps.
replication.quota.window.size.seconds How long one sample of the replication quota lasts.
request.timeout.ms How long this node waits for an answer of another.
sasl.client.callback.handler.class The class a SASL client gets its credentials from.
sasl.enabled.mechanisms The SASL mechanisms clients may use.
sasl.jaas.config The login modules of a listener's mechanism, as in a JAAS file.
sasl.kerberos.kinit.cmd The path of kinit.
sasl.kerberos.min.time.before.relogin The least time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules Rules that make short names of Kerberos principals.
sasl.kerberos.service.name The Kerberos name that brokers run under.
sasl.kerberos.ticket.renew.jitter How much of the time to a ticket's renewal is random.
sasl.kerberos.ticket.renew.window.factor After which part of its life a ticket is renewed.
sasl.login.callback.handler.class The class that answers the questions of a login.
sasl.login.class The class that logs in.
sasl.login.connect.timeout.ms How long connecting to a login provider may take.
sasl.login.read.timeout.ms How long reading from a login provider may take.
sasl.login.refresh.buffer.seconds How long before its end a credential is renewed at the latest.
sasl.login.refresh.min.period.seconds The least time between two renewals of a credential.
sasl.login.refresh.window.factor After which part of its life a credential is renewed.
sasl.login.refresh.window.jitter How much of the time to a credential's renewal is random.
sasl.login.retry.backoff.max.ms The longest pause before a login is tried again.
sasl.login.retry.backoff.ms The first pause before a login is tried again.
sasl.mechanism.controller.protocol The SASL mechanism towards controllers.
sasl.mechanism.inter.broker.protocol The SASL mechanism between brokers.
sasl.oauthbearer.assertion.algorithm The algorithm that client assertions are signed with.
sasl.oauthbearer.assertion.claim.aud The audience claim of a client assertion.
sasl.oauthbearer.assertion.claim.exp.seconds How long a client assertion is good.
sasl.oauthbearer.assertion.claim.iss The issuer claim of a client assertion.
sasl.oauthbearer.assertion.claim.jti.include Whether a client assertion has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds From how long before its making a client assertion is good.
sasl.oauthbearer.assertion.claim.sub The subject claim of a client assertion.
sasl.oauthbearer.assertion.file A file with a client assertion that is ready.
sasl.oauthbearer.assertion.private.key.file The file of the key that signs client assertions.
sasl.oauthbearer.assertion.private.key.passphrase The passphrase of that key.
sasl.oauthbearer.assertion.template.file A file with claims and headers for client assertions.
sasl.oauthbearer.client.credentials.client.id The client id for tokens by client credentials.
sasl.oauthbearer.client.credentials.client.secret The secret that belongs to that client id.
sasl.oauthbearer.clock.skew.seconds By how much the clocks of issuer and broker may differ.
sasl.oauthbearer.expected.audience The audiences a token may be meant for.
sasl.oauthbearer.expected.issuer The issuer a token has to be of.
sasl.oauthbearer.jwks.endpoint.refresh.ms How often the issuer's keys are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms The longest pause before they are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms The first pause before they are fetched again.
sasl.oauthbearer.jwks.endpoint.url Where the issuer's keys are fetched from.
sasl.oauthbearer.jwt.retriever.class The class that gets tokens.
sasl.oauthbearer.jwt.validator.class The class that checks tokens.
sasl.oauthbearer.scope The scope that is asked for with a token.
sasl.oauthbearer.scope.claim.name The claim that holds a token's scopes.
sasl.oauthbearer.sub.claim.name The claim that holds a token's subject.
sasl.oauthbearer.token.endpoint.url Where tokens are asked for.
sasl.server.callback.handler.class The class that checks the credentials of SASL clients.
sasl.server.max.receive.size The largest message before a client has authenticated.
security.inter.broker.protocol The security protocol between brokers, if no listener is named for it.
security.providers Classes that add security algorithms.
share.coordinator.append.linger.ms How long the share coordinator gathers records before it writes them.
share.coordinator.cached.buffer.max.bytes The largest buffer the share coordinator keeps for its next write.
share.coordinator.load.buffer.size How much is read at a time while share state is loaded.
share.coordinator.snapshot.update.records.per.snapshot After how many updates share state is written whole.
share.coordinator.state.topic.compression.codec The codec of the topic of share state; 0 is none.
share.coordinator.state.topic.min.isr The fewest replicas in sync of the topic of share state.
share.coordinator.state.topic.num.partitions How many partitions the topic of share state has.
share.coordinator.state.topic.replication.factor How many replicas the topic of share state has.
share.coordinator.state.topic.segment.bytes How large a segment of the topic of share state may get.
share.coordinator.threads How many threads the share coordinator has.
share.coordinator.write.timeout.ms How long a write of the share coordinator waits for its replicas.
share.fetch.purgatory.purge.interval.requests After how many requests finished share fetches are dropped.
socket.connection.setup.timeout.max.ms The longest time that opening a connection may take after failures.
socket.connection.setup.timeout.ms How long opening a connection may take at first.
socket.listen.backlog.size How many connections may wait to be accepted.
socket.receive.buffer.bytes The receive buffer of a client's socket; -1 leaves it to the system.
socket.request.max.bytes The largest request that is taken.
socket.send.buffer.bytes The send buffer of a client's socket; -1 leaves it to the system.
ssl.allow.dn.changes Whether a new certificate may have another distinguished name.
ssl.allow.san.changes Whether a new certificate may have other alternative names.
ssl.cipher.suites The cipher suites that may be used; all by default.
ssl.client.auth Whether clients need a certificate, may have one, or are not asked.
ssl.enabled.protocols The TLS versions that may be used.
ssl.endpoint.identification.algorithm How a certificate is held against the host name.
ssl.engine.factory.class The class that makes TLS engines.
ssl.key.password The password of the private key.
ssl.keymanager.algorithm How keys are managed.
ssl.keystore.certificate.chain The node's certificates, as PEM.
ssl.keystore.key The node's private key, as PEM.
ssl.keystore.location The file with the node's key and certificates.
ssl.keystore.password The password of that file.
ssl.keystore.type The format of that file.
ssl.principal.mapping.rules Rules that make user names of the names in certificates.
ssl.protocol The TLS version that is tried first.
ssl.provider Who provides TLS in the process.
ssl.secure.random.implementation The random source of TLS.
ssl.trustmanager.algorithm How trust is managed.
ssl.truststore.certificates The certificates that are trusted, as PEM.
ssl.truststore.location The file with the certificates that are trusted.
ssl.truststore.password The password of the file with trusted certificates.
ssl.truststore.type The format of the file with trusted certificates.
telemetry.max.bytes The largest set of metrics a client may push.
transaction.abort.timed.out.transaction.cleanup.interval.ms How often it is looked for transactions to abort.
transaction.max.timeout.ms The longest timeout a transaction may ask for.
transaction.partition.verification.enable Whether a partition asks if it is part of a transaction before it takes records.
transaction.remove.expired.transaction.cleanup.interval.ms How often expired transactional ids are removed.
transaction.state.log.load.buffer.size How much is read at a time while transactions are loaded.
transaction.state.log.min.isr The fewest replicas in sync of the topic of transactions.
transaction.state.log.num.partitions How many partitions the topic of transactions has.
transaction.state.log.replication.factor How many replicas the topic of transactions has.
transaction.state.log.segment.bytes How large a segment of the topic of transactions may get.
transaction.two.phase.commit.enable Whether a transaction may be left prepared for somebody else to decide.
transactional.id.expiration.ms How long a transactional id that nobody uses is kept.
unclean.leader.election.enable Whether a replica that is not in sync may lead when no other is left.
"""  # noqa: E501 - a row is as long as its sentence

DOCUMENTATION = dict(line.split(" ", 1) for line in _TABLE.split("\n")[1:-1])
"""The sentence of each setting, by its name."""
