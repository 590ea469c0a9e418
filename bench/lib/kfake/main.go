// franz-go's fake cluster, for a benchmark: each line of input is one thing to do, and is answered by
// one line: "start" by the address, "fail" (the next Produce is refused) and "close" by "done".
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func refuse(request kmsg.Request) (kmsg.Response, error, bool) {
	asked := request.(*kmsg.ProduceRequest)
	answer := asked.ResponseKind().(*kmsg.ProduceResponse)
	for _, each := range asked.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = each.Topic, each.TopicID
		for _, one := range each.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition = one.Partition
			partition.ErrorCode = kerr.TopicAuthorizationFailed.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer, nil, true
}

func main() {
	var cluster *kfake.Cluster
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer := "done"
		switch lines.Text() {
		case "start":
			made, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
			if err != nil {
				log.Fatal(err)
			}
			cluster = made
			answer = made.ListenAddrs()[0]
		case "fail":
			cluster.ControlKey(int16(kmsg.Produce), refuse)
		case "close":
			cluster.Close()
		}
		fmt.Println(answer)
	}
}
