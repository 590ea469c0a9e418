// The file of millstream/testing/clients/typescript, as a user has it, with KafkaJS.
import assert from "node:assert/strict";
import { Kafka, logLevel } from "kafkajs";
import { Broker } from "./millstream.js";

async function produce(broker: Broker): Promise<string | undefined> {
  const kafka = new Kafka({
    brokers: [broker.bootstrapServers],
    clientId: "orders-app",
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 10 },
  });
  const producer = kafka.producer({ allowAutoTopicCreation: true });
  await producer.connect();
  try {
    const [written] = await producer.send({ topic: "orders", messages: [{ value: "value", partition: 0 }] });
    return written?.baseOffset;
  } finally {
    await producer.disconnect();
  }
}

assert.deepEqual(await new Broker(process.env["CONTROL_URL"] ?? "").requests(), []);

const broker = await Broker.start({ "num.partitions": "1" });
try {
  await broker.snapshot();
  const first = broker.bootstrapServers;
  const rule = await broker.error("Produce", "NOT_LEADER_OR_FOLLOWER", { topic: "orders", partition: 0 }).times(2);
  assert.equal(await produce(broker), "0");
  await rule.waitHit(5_000);
  assert.equal(await rule.hits(), 2);
  const calls = await broker.requests({ api: "Produce", client_id: "orders-app" });
  assert.deepEqual(calls.map((call) => call.errors), [["NOT_LEADER_OR_FOLLOWER"], ["NOT_LEADER_OR_FOLLOWER"], []]);
  await broker.clear();
  await broker.clearRequests();

  await broker.delay("Metadata", 10, { client_id: "orders-app" }).onCall(1);
  assert.equal(await produce(broker), "1");
  await broker.clear();

  await broker.blackHole("nobody").always();
  await assert.rejects(broker.clear(), /nobody/);
  await assert.rejects(broker.error("Produce", "NO_SUCH_ERROR").once(), /NO_SUCH_ERROR/);

  const before = await broker.nowMs();
  await broker.advance(7_200_000);
  assert.ok((await broker.nowMs()) >= before + 7_200_000);
  await broker.restore();
  assert.notEqual(broker.bootstrapServers, first);
  assert.equal(await produce(broker), "0");
} finally {
  await broker.close();
}
