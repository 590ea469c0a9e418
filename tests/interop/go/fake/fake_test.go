// Ten tests of franz-go's own suite that use its fake cluster (pkg/kfake), by their meaning, on a
// real broker. Each names the test that it corresponds to; the answers are the same, except where a
// comment says what a real broker does instead.
package fake

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"interop/millstream"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	patience      = 2 * time.Minute
	maxTimeout    = 300_000
	maxTimeoutKey = "transaction.max.timeout.ms"
)

var broker *millstream.Broker

func TestMain(m *testing.M) {
	var err error
	broker, err = millstream.Start(map[string]string{maxTimeoutKey: fmt.Sprint(maxTimeout)})
	if err != nil {
		log.Fatal(err)
	}
	status := m.Run()
	if err := broker.Close(); err != nil {
		log.Fatal(err)
	}
	os.Exit(status)
}

// --- what the tests share ---

func within(t *testing.T) context.Context {
	limit, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return limit
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(broker.BootstrapServers()),
		kgo.FetchMaxWait(250 * time.Millisecond),
		kgo.MetadataMinAge(10 * time.Millisecond),
	}, options...)...)
	must(t, err)
	t.Cleanup(made.Close)
	return made
}

// topic creates the topic with the name of the test.
func topic(t *testing.T) string {
	t.Helper()
	create(t, client(t), t.Name())
	return t.Name()
}

func create(t *testing.T, with *kgo.Client, name string) {
	t.Helper()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = name, 1, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(within(t), with)
	must(t, err)
	must(t, kerr.ErrorForCode(answer.Topics[0].ErrorCode))
}

func produce(t *testing.T, with *kgo.Client, values ...string) {
	t.Helper()
	for _, value := range values {
		must(t, with.ProduceSync(within(t), kgo.StringRecord(value)).FirstErr())
	}
}

// committed are the first records of a topic that a reader of committed records gets.
func committed(t *testing.T, name string, count int) []string {
	t.Helper()
	reader := client(t, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	var values []string
	for len(values) < count {
		fetches := reader.PollFetches(within(t))
		must(t, fetches.Err())
		for _, record := range fetches.Records() {
			values = append(values, string(record.Value))
		}
	}
	return values
}

func initProducer(t *testing.T, with *kgo.Client, id string, producer int64, epoch int16, timeout int32) *kmsg.InitProducerIDResponse {
	t.Helper()
	request := kmsg.NewPtrInitProducerIDRequest()
	request.TransactionalID = &id
	request.ProducerID, request.ProducerEpoch = producer, epoch
	request.TransactionTimeoutMillis = timeout
	answer, err := request.RequestWith(within(t), with)
	must(t, err)
	return answer
}

// arm arms a fault once; at the end of the test it must have hit.
func arm(t *testing.T, fault *millstream.Fault) {
	t.Helper()
	_, err := fault.Once()
	must(t, err)
	t.Cleanup(func() { must(t, broker.Clear()) })
}

// --- transactions ---

// issues_test.go, TestTransactionCommit.
func TestTransactionCommit(t *testing.T) {
	name := topic(t)
	producer := client(t, kgo.DefaultProduceTopic(name), kgo.TransactionalID(name))
	must(t, producer.BeginTransaction())
	produce(t, producer, "0", "1", "2")
	must(t, producer.EndTransaction(within(t), kgo.TryCommit))
	if values := committed(t, name, 3); fmt.Sprint(values) != "[0 1 2]" {
		t.Fatal(values)
	}
}

// issues_test.go, TestTransactionAbort.
func TestTransactionAbort(t *testing.T) {
	name := topic(t)
	producer := client(t, kgo.DefaultProduceTopic(name), kgo.TransactionalID(name))
	must(t, producer.BeginTransaction())
	produce(t, producer, "aborted", "aborted")
	must(t, producer.EndTransaction(within(t), kgo.TryAbort))
	produce(t, client(t, kgo.DefaultProduceTopic(name)), "3", "4")
	if values := committed(t, name, 2); fmt.Sprint(values) != "[3 4]" {
		t.Fatal(values)
	}
}

// issues_test.go, TestTransactSessionEndNeverJoined: the session's group has no topic to read.
func TestTransactSessionEndNeverJoined(t *testing.T) {
	name := topic(t)
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(broker.BootstrapServers()), kgo.DefaultProduceTopic(name),
		kgo.TransactionalID(name), kgo.ConsumerGroup(name), kgo.ConsumeTopics("no-such-topic"))
	must(t, err)
	defer session.Close()
	must(t, session.Begin())
	must(t, session.ProduceSync(within(t), kgo.StringRecord("value")).FirstErr())
	isCommitted, err := session.End(within(t), kgo.TryCommit)
	must(t, err)
	if !isCommitted {
		t.Fatal("not committed")
	}
}

// behavior_test.go, TestTxnInitProducerIDAbortOngoing: the record after it is the first one read. The
// fake answers when the transaction is aborted; Kafka says CONCURRENT_TRANSACTIONS until it is.
func TestTxnInitProducerIDAbortOngoing(t *testing.T) {
	name := topic(t)
	producer := client(t, kgo.DefaultProduceTopic(name), kgo.TransactionalID(name))
	must(t, producer.BeginTransaction())
	produce(t, producer, "open")
	other, refused := client(t), error(kerr.ConcurrentTransactions)
	for refused == kerr.ConcurrentTransactions && within(t).Err() == nil {
		refused = kerr.ErrorForCode(initProducer(t, other, name, -1, -1, 60_000).ErrorCode)
	}
	must(t, refused)
	produce(t, client(t, kgo.DefaultProduceTopic(name)), "after")
	if values := committed(t, name, 1); values[0] != "after" {
		t.Fatal(values)
	}
}

// behavior_test.go, TestTxnInitProducerIDStaleEpochRecovery. The fake gives a new epoch to a request
// that is repeated with the epoch before; Kafka (KIP-360) answers with the one that it gave before.
func TestTxnInitProducerIDStaleEpochRecovery(t *testing.T) {
	with := client(t)
	first := initProducer(t, with, t.Name(), -1, -1, 60_000)
	second := initProducer(t, with, t.Name(), first.ProducerID, first.ProducerEpoch, 60_000)
	again := initProducer(t, with, t.Name(), first.ProducerID, first.ProducerEpoch, 60_000)
	must(t, kerr.ErrorForCode(again.ErrorCode))
	if first.ProducerEpoch != 0 || second.ProducerEpoch != 1 || again.ProducerEpoch != 1 {
		t.Fatal(first.ProducerEpoch, second.ProducerEpoch, again.ProducerEpoch)
	}
}

// behavior_test.go, TestTxnInitProducerIDMaxTimeout.
func TestTxnInitProducerIDMaxTimeout(t *testing.T) {
	with := client(t)
	must(t, kerr.ErrorForCode(initProducer(t, with, "good", -1, -1, maxTimeout).ErrorCode))
	refused := kerr.ErrorForCode(initProducer(t, with, "bad", -1, -1, maxTimeout+1).ErrorCode)
	if refused != kerr.InvalidTransactionTimeout {
		t.Fatal(refused)
	}
}

// behavior_test.go, TestTxnAddOffsetsWithoutGroup: only the topic that is not there is refused.
func TestTxnAddOffsetsWithoutGroup(t *testing.T) {
	with := client(t)
	made := initProducer(t, with, t.Name(), -1, -1, 60_000)
	adding := kmsg.NewPtrAddOffsetsToTxnRequest()
	adding.TransactionalID, adding.Group = t.Name(), t.Name()
	adding.ProducerID, adding.ProducerEpoch = made.ProducerID, made.ProducerEpoch
	added, err := adding.RequestWith(within(t), with)
	must(t, err)
	must(t, kerr.ErrorForCode(added.ErrorCode))
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Partition = 99
	offsets := kmsg.NewTxnOffsetCommitRequestTopic()
	offsets.Topic = "no-such-topic"
	offsets.Partitions = append(offsets.Partitions, partition)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.Generation = t.Name(), t.Name(), -1
	commit.ProducerID, commit.ProducerEpoch = made.ProducerID, made.ProducerEpoch
	commit.Topics = append(commit.Topics, offsets)
	answer, err := commit.RequestWith(within(t), with)
	must(t, err)
	refused := kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
	if refused != kerr.UnknownTopicOrPartition {
		t.Fatal(refused)
	}
}

// --- what a producer makes of errors ---

// issues_test.go, TestFirstMetadataPartitionErrors: the topic's first metadata has no leader.
func TestFirstMetadataPartitionErrors(t *testing.T) {
	name := topic(t)
	arm(t, broker.Error("Metadata", "LEADER_NOT_AVAILABLE").Topic(name).With("at", "partition"))
	produce(t, client(t, kgo.DefaultProduceTopic(name)), "value")
}

// impatient gives up after two answers that a topic is unknown.
func impatient(t *testing.T, name string) *kgo.Client {
	t.Helper()
	pause := func(int) time.Duration { return time.Millisecond }
	return client(t, kgo.DefaultProduceTopic(name), kgo.UnknownTopicRetries(2),
		kgo.RetryBackoffFn(pause), kgo.MetadataMaxAge(time.Minute))
}

// issues_test.go, TestProduceUnknownFailLimitNotResetByOtherErrors.
func TestProduceUnknownFailLimitNotResetByOtherErrors(t *testing.T) {
	name := topic(t)
	for range 2 {
		arm(t, broker.Error("Produce", "UNKNOWN_TOPIC_OR_PARTITION").Topic(name))
		arm(t, broker.Error("Produce", "NOT_ENOUGH_REPLICAS").Topic(name))
	}
	arm(t, broker.Error("Produce", "UNKNOWN_TOPIC_OR_PARTITION").Topic(name))
	err := impatient(t, name).ProduceSync(within(t), kgo.StringRecord("value")).FirstErr()
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Fatal(err)
	}
}

// issues_test.go, TestProduceUnknownFailLimitRecreatedTopic.
func TestProduceUnknownFailLimitRecreatedTopic(t *testing.T) {
	name := topic(t)
	producer := impatient(t, name)
	produce(t, producer, "before")
	admin := client(t)
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(name)
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Topics, request.TopicNames = append(request.Topics, topic), []string{name}
	answer, err := request.RequestWith(within(t), admin)
	must(t, err)
	must(t, kerr.ErrorForCode(answer.Topics[0].ErrorCode))
	create(t, admin, name)
	err = producer.ProduceSync(within(t), kgo.StringRecord("after")).FirstErr()
	if !errors.Is(err, kerr.UnknownTopicID) {
		t.Fatal(err)
	}
}
