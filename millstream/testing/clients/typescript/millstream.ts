/**
 * A real Kafka-compatible broker that fails on command, for tests. Copy this file into your
 * project; it needs Node 18 and nothing else.
 *
 *     const broker = await Broker.start();
 *     const rule = await broker.error("Produce", "NOT_LEADER_OR_FOLLOWER", { topic: "orders" }).times(3);
 *     ... a client of broker.bootstrapServers ...
 *     await rule.waitHit(5_000);
 *     await broker.close(); // throws if a rule has hit nothing
 *
 * The program is `millstream` of the PATH, or what the variable MILLSTREAM names.
 * `new Broker("http://127.0.0.1:9644")` uses one that somebody else started with `--testing`.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READY_MS = 60_000;
const STOP_MS = 20_000;

/** The calls that a fault is for; without any, all calls of its API. */
export interface Chosen {
  topic?: string;
  partition?: number;
  client_id?: string;
  principal?: string;
  transactional_id?: string;
  group?: string;
  version?: number;
  /** Do the work before the fault. */
  after?: boolean;
}

/** When a rule acts. */
export type When =
  | { times: number }
  | { on_call: number }
  | { always: true }
  | { probability: number; seed: number };

/** One call of a client. */
export interface Call {
  id: number;
  api: string;
  version: number;
  client_id: string;
  principal: string;
  topics: Record<string, number[]>;
  groups: string[];
  transactional_ids: string[];
  at_ms: number;
  duration_ms: number | null;
  errors: string[];
  faults: number[];
}

/** What `requests` looks for. */
export interface Wanted {
  api?: string;
  client_id?: string;
  principal?: string;
  topic?: string;
  group?: string;
  transactional_id?: string;
}

/** A fault that is armed. */
export class Rule {
  readonly what: string;
  private readonly broker: Broker;
  private readonly id: number;

  constructor(broker: Broker, id: number, what: string) {
    this.broker = broker;
    this.id = id;
    this.what = what;
  }

  /** The number of calls that it has hit. */
  async hits(): Promise<number> {
    return (await this.broker.call<{ hits: number }>("GET", `/faults/${this.id}`)).hits;
  }

  /** Wait until it has hit a call; throw if it has not in this time. */
  async waitHit(timeoutMs = 10_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while ((await this.hits()) === 0) {
      if (Date.now() > deadline) throw new Error(`${this.what} has hit nothing in ${timeoutMs} ms`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }
}

/** A fault that is not armed so far: one of its methods says when it acts. */
export class Fault {
  private readonly broker: Broker;
  private readonly rule: object;

  constructor(broker: Broker, rule: object) {
    this.broker = broker;
    this.rule = rule;
  }

  once = (): Promise<Rule> => this.times(1);
  times = (count: number): Promise<Rule> => this.broker.arm(this.rule, { times: count });
  /** Hit one call alone: the next one is number 1. */
  onCall = (number: number): Promise<Rule> => this.broker.arm(this.rule, { on_call: number });
  always = (): Promise<Rule> => this.broker.arm(this.rule, { always: true });
  withProbability = (share: number, seed: number): Promise<Rule> =>
    this.broker.arm(this.rule, { probability: share, seed });
}

/** One broker under test. */
export class Broker {
  /** The address for clients, as host:port; "" for a broker that somebody else started. */
  bootstrapServers = "";
  private url: string;
  private headers: Record<string, string> = {};
  private rules: Rule[] = [];
  private process: ChildProcess | null = null;
  private folder = "";

  /** `url` is the address of the broker's metrics, with `user:password@` if it asks for one. */
  constructor(url: string) {
    const [, scheme, user, host] = /^(\w+:\/\/)(?:(.*)@)?(.*?)\/*$/.exec(url) ?? ["", "", undefined, ""];
    this.url = `${scheme}${host}`;
    if (user !== undefined) this.headers["Authorization"] = `Basic ${btoa(decodeURIComponent(user))}`;
  }

  /** Start a broker with Kafka's settings, and return when it is ready. */
  static async start(settings: Record<string, string> = {}): Promise<Broker> {
    const broker = new Broker("");
    broker.folder = await mkdtemp(join(tmpdir(), "millstream-"));
    const all = {
      listeners: "PLAINTEXT://127.0.0.1:0",
      "log.dirs": join(broker.folder, "data"),
      "group.initial.rebalance.delay.ms": "0",
      "offsets.topic.num.partitions": "5",
      "transaction.state.log.num.partitions": "5",
      ...settings,
    };
    const overrides = Object.entries(all).flatMap(([name, value]) => ["--override", `${name}=${value}`]);
    try {
      await broker.launch(["broker", "start", "--testing", "--exit-with-parent", ...overrides]);
    } catch (error) {
      await broker.stop();
      throw error;
    }
    return broker;
  }

  private launch(words: string[]): Promise<void> {
    // The broker ends when this process does: its standard input closes then.
    const started = spawn(process.env["MILLSTREAM"] ?? "millstream", words, { stdio: "pipe" });
    this.process = started;
    return new Promise((ready, fail) => {
      let said = "";
      const late = setTimeout(() => fail(new Error(`the broker was not ready in time\n${said}`)), READY_MS);
      const read = (text: Buffer): void => {
        if (this.bootstrapServers) return; // What follows is the broker's log.
        said += text.toString();
        const url = /health and metrics on (\S+)\s/.exec(said)?.[1];
        const address = /millstream broker \d+ ready on (\S+)\s/.exec(said)?.[1];
        if (url === undefined || address === undefined) return;
        clearTimeout(late);
        this.url = url;
        this.bootstrapServers = address;
        ready();
      };
      started.stdout.on("data", read);
      started.stderr.on("data", read);
      started.on("error", (error) => (clearTimeout(late), fail(error)));
      started.on("exit", () => (clearTimeout(late), fail(new Error(`the broker did not start\n${said}`))));
    });
  }

  /** End all rules and stop the broker; throw if a rule has hit nothing. */
  async close(): Promise<void> {
    try {
      await this.clear();
    } finally {
      await this.stop();
    }
  }

  private async stop(): Promise<void> {
    const started = this.process;
    this.process = null;
    if (started?.pid !== undefined && started.exitCode === null && started.signalCode === null) {
      const ended = new Promise((done) => started.once("exit", done));
      started.kill("SIGTERM");
      const kill = setTimeout(() => started.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(kill);
    }
    if (this.folder) await rm(this.folder, { recursive: true, force: true });
  }

  // --- faults ---

  /** Any kind of /openapi.json: lose_request, lose_answer, close, reset, tear, damage_records. */
  fault(kind: string, api?: string, chosen: Chosen & Record<string, unknown> = {}): Fault {
    return new Fault(this, { kind, api, ...chosen });
  }

  /** Answer with an error, by Kafka's names; the work is not done, or is with `after`. */
  error(api: string, error: string, chosen: Chosen = {}): Fault {
    return this.fault("error", api, { error, ...chosen });
  }

  /** Wait before a request is handled. */
  delay(api: string, ms: number, chosen: Chosen = {}): Fault {
    return this.fault("delay", api, { ms, ...chosen });
  }

  /** Drop every request of one client. */
  blackHole(clientId: string): Fault {
    return this.fault("black_hole", undefined, { client_id: clientId });
  }

  /** Arm a rule, written as in /openapi.json. */
  async arm(rule: object, when: When): Promise<Rule> {
    const armed = await this.call<{ id: number }>("POST", "/faults", { ...rule, when });
    const made = new Rule(this, armed.id, JSON.stringify({ ...rule, when }));
    this.rules.push(made);
    return made;
  }

  /** End all rules; throw if one has hit nothing: a test with such a rule has shown nothing. */
  async clear(): Promise<void> {
    const hits = await Promise.all(this.rules.map((rule) => rule.hits()));
    const unused = this.rules.filter((_, number) => hits[number] === 0).map((rule) => rule.what);
    this.rules = [];
    await this.call("DELETE", "/faults");
    if (unused.length > 0) throw new Error(`faults that hit nothing: ${unused.join("; ")}`);
  }

  // --- what clients asked ---

  /** The calls of clients, the oldest first. */
  async requests(wanted: Wanted = {}): Promise<Call[]> {
    const calls: Call[] = [];
    for (let after = 0; ; ) {
      const query = new URLSearchParams({ ...wanted, after: String(after) });
      const page = await this.call<{ requests: Call[]; last_id: number }>("GET", `/requests?${query}`);
      calls.push(...page.requests);
      if (page.last_id === after) return calls;
      after = page.last_id;
    }
  }

  /** Forget the calls so far. */
  clearRequests(): Promise<void> {
    return this.call("DELETE", "/requests");
  }

  // --- time and state ---

  /** Move the broker's time forward; what is due by then is done. */
  async advance(ms: number): Promise<void> {
    await this.call("POST", "/clock", { advance_ms: ms });
  }

  /** The broker's time, in milliseconds since 1970 UTC. */
  async nowMs(): Promise<number> {
    return (await this.call<{ timestamp_ms: number }>("GET", "/clock")).timestamp_ms;
  }

  /** Keep the broker's state for `restore`; all clients are disconnected. */
  async snapshot(): Promise<void> {
    await this.call("POST", "/snapshot");
  }

  /** Return to the snapshot, on another port: earlier clients do not come back; rules end. */
  async restore(): Promise<void> {
    const body = { new_ports: true };
    const answer = await this.call<{ listeners: Record<string, string> }>("POST", "/restore", body);
    this.rules = [];
    this.bootstrapServers = Object.values(answer.listeners)[0] ?? "";
  }

  /** One request to the control; throws with what the broker refused. */
  async call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const content = body === undefined ? null : JSON.stringify(body);
    const answer = await fetch(this.url + path, { method, body: content, headers: this.headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
    return (text ? JSON.parse(text) : undefined) as Answer;
  }
}
