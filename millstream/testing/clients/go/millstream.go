// Package millstream runs a real Kafka-compatible broker that fails on command, for tests. Copy
// this file into your project; it needs the standard library alone.
//
//	broker, err := millstream.Start(nil)
//	defer broker.Close()
//	rule, err := broker.Error("Produce", "NOT_LEADER_OR_FOLLOWER").Topic("orders").Times(3)
//	... a client of broker.BootstrapServers() ...
//	err = rule.WaitHit(5 * time.Second)
//
// The program is `millstream` of the PATH, or what the variable MILLSTREAM names. Connect uses a
// broker that somebody else started with `--testing`.
package millstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	readyTime = 60 * time.Second
	stopTime  = 20 * time.Second
)

var (
	readyLine = regexp.MustCompile(`millstream broker \d+ ready on (\S+)`)
	httpLine  = regexp.MustCompile(`health and metrics on (\S+)`)
)

// Broker is one broker under test.
type Broker struct {
	url       string
	bootstrap string
	http      http.Client
	rules     []*Rule
	process   *exec.Cmd
	ended     chan struct{}
	folder    string
}

// Connect uses a broker that runs with `--testing`; its metrics are served at this address.
func Connect(address string) *Broker {
	return &Broker{url: strings.TrimRight(address, "/"), http: http.Client{Timeout: readyTime}}
}

// Start starts a broker with Kafka's settings, and returns when it is ready.
func Start(settings map[string]string) (*Broker, error) {
	folder, err := os.MkdirTemp("", "millstream-")
	if err != nil {
		return nil, err
	}
	program := os.Getenv("MILLSTREAM")
	if program == "" {
		program = "millstream"
	}
	arguments := []string{"broker", "start", "--testing", "--exit-with-parent"}
	all := map[string]string{
		"listeners":                            "PLAINTEXT://127.0.0.1:0",
		"log.dirs":                             filepath.Join(folder, "data"),
		"group.initial.rebalance.delay.ms":     "0",
		"offsets.topic.num.partitions":         "5",
		"transaction.state.log.num.partitions": "5",
	}
	for name, value := range settings {
		all[name] = value
	}
	for name, value := range all {
		arguments = append(arguments, "--override", name+"="+value)
	}
	broker := Connect("")
	broker.folder = folder
	broker.process = exec.Command(program, arguments...)
	broker.ended = make(chan struct{})
	if err := broker.launch(); err != nil {
		return nil, errors.Join(err, broker.Close())
	}
	return broker, nil
}

func (b *Broker) launch() error {
	reader, writer := io.Pipe()
	b.process.Stdout, b.process.Stderr = writer, writer
	if _, err := b.process.StdinPipe(); err != nil { // The broker ends when this process does.
		return err
	}
	if err := b.process.Start(); err != nil {
		b.process = nil
		return err
	}
	process := b.process
	go func() {
		_ = process.Wait()
		writer.Close()
		close(b.ended)
	}()
	type address struct{ url, bootstrap, said string }
	found := make(chan address, 1)
	go func() {
		var seen address
		var said strings.Builder
		isTold := false
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadString('\n')
			if match := httpLine.FindStringSubmatch(line); match != nil {
				seen.url = match[1]
			}
			if match := readyLine.FindStringSubmatch(line); match != nil {
				seen.bootstrap = match[1]
			}
			if !isTold {
				said.WriteString(line)
				if err != nil || (seen.url != "" && seen.bootstrap != "") {
					isTold = true
					seen.said = said.String()
					found <- seen
				}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case seen := <-found:
		if seen.bootstrap == "" {
			return fmt.Errorf("the broker did not start:\n%s", seen.said)
		}
		b.url, b.bootstrap = seen.url, seen.bootstrap
		return nil
	case <-time.After(readyTime):
		return errors.New("the broker was not ready in time")
	}
}

// Close stops a broker that was started here, and removes its files.
func (b *Broker) Close() error {
	if b.process != nil {
		_ = b.process.Process.Signal(syscall.SIGTERM)
		select {
		case <-b.ended:
		case <-time.After(stopTime):
			_ = b.process.Process.Kill()
			<-b.ended
		}
		b.process = nil
	}
	if b.folder == "" {
		return nil
	}
	return os.RemoveAll(b.folder)
}

// BootstrapServers is the address for clients, as host:port; "" after Connect.
func (b *Broker) BootstrapServers() string { return b.bootstrap }

// --- faults: each is armed by the word that says when it acts ---

// Fault is a fault that is not armed so far.
type Fault struct {
	broker *Broker
	rule   map[string]any
}

// Fault has any kind of /openapi.json: lose_request, lose_answer, close, reset, tear,
// damage_records. An empty api means all.
func (b *Broker) Fault(kind, api string) *Fault {
	fault := &Fault{b, map[string]any{"kind": kind}}
	if api != "" {
		fault.rule["api"] = api
	}
	return fault
}

// Error answers with an error, by Kafka's names; the work is not done.
func (b *Broker) Error(api, name string) *Fault { return b.Fault("error", api).With("error", name) }

// Delay waits before a request is handled.
func (b *Broker) Delay(api string, wait time.Duration) *Fault {
	return b.Fault("delay", api).With("ms", wait.Milliseconds())
}

// BlackHole drops every request of one client.
func (b *Broker) BlackHole(clientID string) *Fault {
	return b.Fault("black_hole", "").ClientID(clientID)
}

// With sets one more field of a rule: ms, version, principal, at, bytes, disk.
func (f *Fault) With(name string, value any) *Fault { f.rule[name] = value; return f }

// After does the work first.
func (f *Fault) After() *Fault { return f.With("after", true) }

// Topic chooses the calls that name a topic.
func (f *Fault) Topic(name string) *Fault { return f.With("topic", name) }

// Partition chooses the calls that name a partition.
func (f *Fault) Partition(number int) *Fault { return f.With("partition", number) }

// ClientID chooses the calls of a client.
func (f *Fault) ClientID(id string) *Fault { return f.With("client_id", id) }

// TransactionalID chooses the calls of a transactional producer.
func (f *Fault) TransactionalID(id string) *Fault { return f.With("transactional_id", id) }

// Group chooses the calls about a group.
func (f *Fault) Group(id string) *Fault { return f.With("group", id) }

// Once hits the next call.
func (f *Fault) Once() (*Rule, error) { return f.Times(1) }

// Times hits the next calls, this many.
func (f *Fault) Times(count int) (*Rule, error) { return f.arm(map[string]any{"times": count}) }

// OnCall hits one call alone: the next one is number 1.
func (f *Fault) OnCall(number int) (*Rule, error) { return f.arm(map[string]any{"on_call": number}) }

// Always hits every call until the rules are cleared.
func (f *Fault) Always() (*Rule, error) { return f.arm(map[string]any{"always": true}) }

// WithProbability hits a share of the calls, the same ones for the same seed.
func (f *Fault) WithProbability(share float64, seed int) (*Rule, error) {
	return f.arm(map[string]any{"probability": share, "seed": seed})
}

func (f *Fault) arm(when map[string]any) (*Rule, error) {
	f.rule["when"] = when
	rule := &Rule{broker: f.broker, what: f.rule}
	if err := f.broker.call("POST", "/faults", f.rule, rule); err != nil {
		return nil, err
	}
	f.broker.rules = append(f.broker.rules, rule)
	return rule, nil
}

// Rule is a fault that is armed.
type Rule struct {
	ID     int64 `json:"id"`
	broker *Broker
	what   map[string]any
}

// Hits is the number of calls that it has hit.
func (r *Rule) Hits() (int64, error) {
	var found struct{ Hits int64 }
	err := r.broker.call("GET", fmt.Sprintf("/faults/%d", r.ID), nil, &found)
	return found.Hits, err
}

// WaitHit waits until it has hit a call; it fails if it has not in this time.
func (r *Rule) WaitHit(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		if hits, err := r.Hits(); err != nil || hits > 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v has hit nothing in %v", r.what, timeout)
		}
	}
}

// Clear ends all rules; it fails if one has hit nothing: a test with such a rule has shown nothing.
func (b *Broker) Clear() error {
	var failures []error
	for _, rule := range b.rules {
		if hits, err := rule.Hits(); err != nil {
			failures = append(failures, err)
		} else if hits == 0 {
			failures = append(failures, fmt.Errorf("%v hit nothing", rule.what))
		}
	}
	b.rules = nil
	failures = append(failures, b.call("DELETE", "/faults", nil, nil))
	return errors.Join(failures...)
}

// --- what clients asked ---

// Call is one call of a client.
type Call struct {
	ID               int64            `json:"id"`
	API              string           `json:"api"`
	Version          int              `json:"version"`
	ClientID         string           `json:"client_id"`
	Principal        string           `json:"principal"`
	Topics           map[string][]int `json:"topics"`
	Groups           []string         `json:"groups"`
	TransactionalIDs []string         `json:"transactional_ids"`
	AtMs             int64            `json:"at_ms"`
	DurationMs       *float64         `json:"duration_ms"`
	Errors           []string         `json:"errors"`
	Faults           []int64          `json:"faults"`
}

// Requests are the calls of clients, the oldest first; filters are api, client_id, topic, ...
func (b *Broker) Requests(filters map[string]string) ([]Call, error) {
	var calls []Call
	query := url.Values{"after": {"0"}}
	for name, value := range filters {
		query.Set(name, value)
	}
	for {
		var page struct {
			Requests []Call
			LastID   int64 `json:"last_id"`
		}
		if err := b.call("GET", "/requests?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		calls = append(calls, page.Requests...)
		last := fmt.Sprint(page.LastID)
		if last == query.Get("after") {
			return calls, nil
		}
		query.Set("after", last)
	}
}

// ClearRequests forgets the calls so far.
func (b *Broker) ClearRequests() error { return b.call("DELETE", "/requests", nil, nil) }

// --- time and state ---

// Advance moves the broker's time forward; what is due by then is done.
func (b *Broker) Advance(by time.Duration) error {
	return b.call("POST", "/clock", map[string]any{"advance_ms": by.Milliseconds()}, nil)
}

// Now is the broker's time.
func (b *Broker) Now() (time.Time, error) {
	var clock struct {
		TimestampMs int64 `json:"timestamp_ms"`
	}
	err := b.call("GET", "/clock", nil, &clock)
	return time.UnixMilli(clock.TimestampMs), err
}

// Snapshot keeps the broker's state for Restore; all clients are disconnected.
func (b *Broker) Snapshot() error { return b.call("POST", "/snapshot", nil, nil) }

// Restore returns to the snapshot, on another port: earlier clients do not come back; rules end.
func (b *Broker) Restore() error {
	var answer struct{ Listeners map[string]string }
	err := b.call("POST", "/restore", map[string]any{"new_ports": true}, &answer)
	b.rules = nil
	for _, address := range answer.Listeners {
		b.bootstrap = address
	}
	return err
}

func (b *Broker) call(method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, b.url+path, content)
	if err != nil {
		return err
	}
	answer, err := b.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s", method, path, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
