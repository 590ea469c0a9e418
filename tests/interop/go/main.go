// The file of millstream/testing/clients/go, as a user has it, with franz-go.
package main

import (
	"context"
	"log"
	"os"
	"strings"
	"time"

	"interop/millstream"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(is bool, what string) {
	if !is {
		log.Fatal("not true: " + what)
	}
}

func produce(broker *millstream.Broker) int64 {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.BootstrapServers()),
		kgo.ClientID("orders-app"), kgo.AllowAutoTopicCreation())
	must(err)
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Value: []byte("value")}
	must(client.ProduceSync(context.Background(), record).FirstErr())
	return record.Offset
}

func main() {
	asked, err := millstream.Connect(os.Getenv("CONTROL_URL")).Requests(nil)
	must(err)
	check(len(asked) == 0, "the password is told")

	broker, err := millstream.Start(map[string]string{"num.partitions": "1"})
	must(err)
	defer func() { must(broker.Close()) }()
	must(broker.Snapshot())
	first := broker.BootstrapServers()

	rule, err := broker.Error("Produce", "NOT_LEADER_OR_FOLLOWER").Topic("orders").Partition(0).Times(2)
	must(err)
	check(produce(broker) == 0, "the record is written once")
	must(rule.WaitHit(5 * time.Second))
	hits, err := rule.Hits()
	must(err)
	check(hits == 2, "two hits")
	calls, err := broker.Requests(map[string]string{"api": "Produce", "client_id": "orders-app"})
	must(err)
	check(len(calls) == 3 && calls[0].Errors[0] == "NOT_LEADER_OR_FOLLOWER", "three calls")
	must(broker.Clear())
	must(broker.ClearRequests())

	_, err = broker.Delay("Metadata", 10*time.Millisecond).ClientID("orders-app").OnCall(1)
	must(err)
	check(produce(broker) == 1, "the second record")
	must(broker.Clear())

	_, err = broker.BlackHole("nobody").Always()
	must(err)
	err = broker.Clear()
	check(err != nil && strings.Contains(err.Error(), "nobody"), "a rule without a hit is told")
	_, err = broker.Error("Produce", "NO_SUCH_ERROR").Once()
	check(err != nil && strings.Contains(err.Error(), "NO_SUCH_ERROR"), "a wrong name is refused")

	before, err := broker.Now()
	must(err)
	must(broker.Advance(2 * time.Hour))
	after, err := broker.Now()
	must(err)
	check(!after.Before(before.Add(2*time.Hour)), "the time has moved")
	must(broker.Restore())
	check(broker.BootstrapServers() != first, "another port")
	check(produce(broker) == 0, "the state of the snapshot")
}
