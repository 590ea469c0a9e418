// KafkaJS beside a broker that fails, as tests/lib/python_calls.py describes it: a line of input is
// one thing to do, and a line of output that begins with "> " is what the program of a user sees.
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { type Consumer, type ConsumerConfig, Kafka, type KafkaConfig, logLevel, type Producer } from "kafkajs";

const REQUEST_MS = 1_500;
const HEARTBEAT_MS = 300;
const READ_MS = 60_000;
const MS_AFTER_AN_ERROR = 6_000;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function readyAndWait(): Promise<void> {
  console.log("? ready");
  await lines.next();
}

// A failure of the last attempt is wrapped in one that says how many there were.
function nameOf(error: unknown): string {
  const found = error as Error & { type?: string; cause?: Error; errors?: unknown[] };
  if (found.errors?.length) return nameOf(found.errors[0]);
  if (found.name === "KafkaJSNumberOfRetriesExceeded" && found.cause?.name.startsWith("Kafka")) return nameOf(found.cause);
  return found.type ?? found.name;
}

// Two retries take about the six seconds after which the other clients give up a record.
const retry = { retries: 2 };

function kafka(bootstrap: string, more: Partial<KafkaConfig> = {}): Kafka {
  return new Kafka({ brokers: [bootstrap], requestTimeout: REQUEST_MS, retry, logLevel: logLevel.NOTHING, ...more });
}

async function send(producer: Producer, topic: string): Promise<void> {
  await producer.send({ topic, messages: [{ value: "value", partition: 0 }] });
}

async function produce(bootstrap: string, topic: string, idempotent: string): Promise<string> {
  const isIdempotent = idempotent === "true";
  const client = kafka(bootstrap, { clientId: topic });
  const producer = client.producer({ idempotent: isIdempotent, retry });
  try {
    await producer.connect();
    await send(producer, topic);
    return "";
  } catch (error) {
    return nameOf(error);
  } finally {
    await producer.disconnect();
  }
}

function newConsumer(bootstrap: string, group: string, more: Partial<ConsumerConfig> = {}): Consumer {
  return kafka(bootstrap).consumer({ groupId: group, maxWaitTimeInMs: HEARTBEAT_MS, retry, ...more });
}

async function consume(bootstrap: string, topic: string, group: string): Promise<string> {
  const consumer = newConsumer(bootstrap, group);
  let first = "";
  let value = "";
  let end = Date.now() + READ_MS;
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (first) return;
    first = nameOf(payload.error);
    end = Date.now() + MS_AFTER_AN_ERROR;
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      value ||= String(message.value);
    },
  });
  while (!value && Date.now() < end) await pause(20);
  await consumer.disconnect();
  return `${first}|${value}`;
}

// What a member of a group sees after it has read the first record.
async function member(bootstrap: string, topic: string, group: string, seconds: string): Promise<string> {
  const seen = new Set<string>();
  let isReady = false;
  let hasSecond = false;
  let isOver = false;
  let end = Date.now() + READ_MS;
  const note = (what: string): void => {
    if (isReady && !isOver) seen.add(what);
  };
  const consumer = newConsumer(bootstrap, group, { heartbeatInterval: HEARTBEAT_MS });
  consumer.on(consumer.events.CRASH, ({ payload }) => note(`\`${nameOf(payload.error)}\``));
  consumer.on(consumer.events.REBALANCING, () => note("revoked"));
  consumer.on(consumer.events.GROUP_JOIN, () => note("assigned"));
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      const isFirst = String(message.value) === "first";
      note(isFirst ? "reads the first again" : "reads on");
      hasSecond ||= !isFirst;
      try {
        await consumer.commitOffsets([{ topic, partition, offset: String(BigInt(message.offset) + 1n) }]);
      } catch (error) {
        note(`commit: \`${nameOf(error)}\``);
        if (hasSecond) end = Math.min(end, Date.now() + MS_AFTER_AN_ERROR);
        throw error;
      }
      isOver = hasSecond;
      if (isReady) return;
      isReady = true;
      end = Date.now() + 1_000 * Number(seconds);
      console.log("! ready");
    },
  });
  while (!isOver && Date.now() < end) await pause(20);
  isOver = true;
  await consumer.disconnect();
  if (!hasSecond) seen.add("reads no more");
  return [...seen].join(", ");
}

async function transact(bootstrap: string, topic: string, transactionalId: string): Promise<string> {
  const settings = { transactionalId, idempotent: true, maxInFlightRequests: 1, retry };
  const producer = kafka(bootstrap).producer(settings);
  await producer.connect();
  const record = { topic, messages: [{ value: "value", partition: 0 }] };
  let open = await producer.transaction();
  await open.send(record);
  await readyAndWait();
  try {
    await open.send(record);
    await open.commit();
    return "is committed";
  } catch (error) {
    const first = `\`${nameOf(error)}\``;
    try {
      await open.abort();
      open = await producer.transaction();
      await open.send(record);
      await open.commit();
      return `${first}, aborts, the next is committed`;
    } catch {
      return `${first}, the producer is over`;
    }
  } finally {
    await producer.disconnect();
  }
}

async function create(bootstrap: string, topic: string): Promise<string> {
  const admin = kafka(bootstrap).admin();
  await admin.connect();
  try {
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] });
    return "";
  } catch (error) {
    return nameOf(error);
  } finally {
    await admin.disconnect();
  }
}

type Call = (...words: string[]) => Promise<string>;
const calls = new Map<string, Call>(
  Object.entries({ produce, consume, member, transact, create } as Record<string, Call>),
);
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const [what = "", ...words] = line.value.split("\t");
  const call = calls.get(what);
  if (call === undefined) throw new Error(line.value);
  console.log(`> ${await call(...words)}`);
}
process.exit(0);
