// franz-go beside a broker that fails, as tests/lib/python_calls.py describes it: a line of input is
// one thing to do, and a line of output that begins with "> " is what the program of a user sees.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	requestTime    = 1500 * time.Millisecond
	recordTime     = 6 * time.Second
	heartbeatTime  = 300 * time.Millisecond
	readTime       = time.Minute
	timeAfterError = 6 * time.Second
)

var lines = bufio.NewScanner(os.Stdin)

func main() {
	calls := map[string]func(words []string) string{
		"produce": produce, "consume": consume, "member": member,
		"transact": transact, "create": create, "log_in": logIn,
	}
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		call, isKnown := calls[words[0]]
		if !isKnown {
			log.Fatal(lines.Text())
		}
		fmt.Println("> " + call(words[1:]))
	}
}

func readyAndWait() {
	fmt.Println("? ready")
	lines.Scan()
}

// nameOf is what a program would look for: Kafka's own name, or the words of the client.
func nameOf(err error) string {
	var kafka *kerr.Error
	if err == nil {
		return ""
	}
	if errors.As(err, &kafka) {
		return kafka.Message
	}
	if lost := new(kgo.ErrDataLoss); errors.As(err, &lost) {
		return "ErrDataLoss"
	}
	if strings.Contains(err.Error(), "crc") {
		return "the checksum in words"
	}
	for name, known := range map[string]error{
		"ErrRecordTimeout": kgo.ErrRecordTimeout, "ErrRecordRetries": kgo.ErrRecordRetries,
		"DeadlineExceeded": context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

func newClient(bootstrap string, options ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.RequestTimeoutOverhead(requestTime),
		kgo.ProduceRequestTimeout(100 * time.Millisecond),
		kgo.MetadataMinAge(heartbeatTime), // it waits so long before it tries again
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, options...)
	client, err := kgo.NewClient(all...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// send gives up at last; an idempotent client does not, once it has tried to send the record.
func send(client *kgo.Client, topic string) error {
	answer := make(chan error, 1)
	record := &kgo.Record{Topic: topic, Value: []byte("value")}
	client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-time.After(2 * recordTime):
		return errors.New("no answer")
	}
}

func produce(words []string) string {
	options := []kgo.Opt{kgo.ClientID(words[1]), kgo.RecordDeliveryTimeout(recordTime)}
	if words[2] != "true" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client := newClient(words[0], options...)
	defer client.Close()
	return nameOf(send(client, words[1]))
}

func consume(words []string) string {
	client := newClient(words[0], kgo.ConsumerGroup(words[2]), kgo.ConsumeTopics(words[1]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(heartbeatTime))
	defer client.Close()
	first := ""
	for end := time.Now().Add(readTime); time.Now().Before(end); {
		limit, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollFetches(limit)
		cancel()
		for _, record := range fetches.Records() {
			return first + "|" + string(record.Value)
		}
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) && first == "" {
				first = nameOf(failed.Err)
				end = time.Now().Add(timeAfterError)
			}
		}
	}
	return first + "|"
}

// seen is what a member of a group sees after it has read the first record.
type seen struct {
	sync.Mutex
	isReady   bool
	hasSecond bool
	notes     []string
}

func (s *seen) note(what string) {
	s.Lock()
	defer s.Unlock()
	if s.isReady && !slices.Contains(s.notes, what) {
		s.notes = append(s.notes, what)
	}
}

func (s *seen) noting(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(context.Context, *kgo.Client, map[string][]int32) { s.note(what) }
}

func (s *seen) isFirstCommit() bool {
	s.Lock()
	defer s.Unlock()
	was := s.isReady
	s.isReady = true
	return !was
}

func (s *seen) read(value string) {
	if value == "first" {
		s.note("reads the first again")
		return
	}
	s.note("reads on")
	s.hasSecond = true
}

func (s *seen) answer() string {
	s.Lock()
	defer s.Unlock()
	if !s.hasSecond {
		s.notes = append(s.notes, "reads no more")
	}
	return strings.Join(s.notes, ", ")
}

func member(words []string) string {
	seconds, err := strconv.Atoi(words[3])
	if err != nil {
		log.Fatal(err)
	}
	var saw seen
	client := newClient(words[0], kgo.ConsumerGroup(words[2]), kgo.ConsumeTopics(words[1]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(heartbeatTime),
		kgo.HeartbeatInterval(heartbeatTime), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(saw.noting("assigned")),
		kgo.OnPartitionsRevoked(saw.noting("revoked")), kgo.OnPartitionsLost(saw.noting("lost")))
	defer client.Close()
	for end := time.Now().Add(readTime); time.Now().Before(end); {
		limit, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollFetches(limit)
		cancel()
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				saw.note("`" + nameOf(failed.Err) + "`")
			}
		}
		for _, record := range fetches.Records() {
			saw.read(string(record.Value))
			if err := client.CommitRecords(context.Background(), record); err != nil {
				saw.note("commit: `" + nameOf(err) + "`")
				if last := time.Now().Add(timeAfterError); saw.hasSecond && last.Before(end) {
					end = last
				}
			} else if saw.hasSecond {
				return saw.answer()
			} else if saw.isFirstCommit() {
				end = time.Now().Add(time.Duration(seconds) * time.Second)
				fmt.Println("! ready")
			}
		}
	}
	return saw.answer()
}

func transact(words []string) string {
	client := newClient(words[0], kgo.TransactionalID(words[2]))
	defer client.Close()
	background := context.Background()
	transaction := func(middle func()) error {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := send(client, words[1]); err != nil {
			return err
		}
		middle()
		if err := send(client, words[1]); err != nil {
			return err
		}
		return client.EndTransaction(background, kgo.TryCommit)
	}
	err := transaction(readyAndWait)
	if err == nil {
		return "is committed"
	}
	first := "`" + nameOf(err) + "`"
	if client.EndTransaction(background, kgo.TryAbort) != nil || transaction(func() {}) != nil {
		return first + ", the producer is over"
	}
	return first + ", aborts, the next is committed"
}

func create(words []string) string {
	client := newClient(words[0])
	defer client.Close()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = words[1], 1, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		return nameOf(err)
	}
	return nameOf(kerr.ErrorForCode(answer.Topics[0].ErrorCode))
}

func logIn(words []string) string {
	token := scram.Auth{User: words[2], Pass: words[3], IsToken: true}
	client := newClient(words[0], kgo.SASL(token.AsSha256Mechanism()),
		kgo.RecordDeliveryTimeout(recordTime))
	defer client.Close()
	if err := send(client, words[1]); err != nil {
		return nameOf(err)
	}
	readyAndWait()
	return nameOf(send(client, words[1]))
}
