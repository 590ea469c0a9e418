// A stock Java client beside a broker that fails, as tests/lib/python_calls.py describes it: a line
// of input is one thing to do, and a line of output that begins with "> " is what the program of a
// user sees. The others are a log.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class RunFaultyCalls {
    static final long READ_MS = 60000;
    static final long MS_AFTER_AN_ERROR = 6000;
    static final BufferedReader LINES = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] none) throws Exception {
        for (String line = LINES.readLine(); line != null; line = LINES.readLine()) {
            String[] words = line.split("\t");
            String seen = switch (words[0]) {
                case "produce" -> produce(words);
                case "consume" -> consume(words);
                case "member" -> new Member(words[4]).run(words);
                case "transact" -> transact(words);
                case "create" -> create(words);
                case "log_in" -> logIn(words);
                default -> throw new IllegalArgumentException(line);
            };
            say("> " + seen);
        }
        Runtime.getRuntime().halt(0);
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void readyAndWait() throws IOException {
        say("? ready");
        LINES.readLine();
    }

    static String nameOf(Throwable error) {
        boolean isWrapped = error instanceof ExecutionException;
        return (isWrapped ? error.getCause() : error).getClass().getSimpleName();
    }

    static Properties with(String bootstrap, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.putAll(more);
        return settings;
    }

    static KafkaProducer<String, String> producer(String bootstrap, Map<String, String> more) {
        return new KafkaProducer<>(with(bootstrap, more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(
            String bootstrap, String group, Map<String, String> more) {
        Properties settings = with(bootstrap, more);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("request.timeout.ms", "1500");
        settings.put("fetch.max.wait.ms", "300");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void send(KafkaProducer<String, String> producer, String topic) throws Exception {
        producer.send(new ProducerRecord<>(topic, 0, null, "value")).get();
    }

    static String produce(String[] words) throws Exception {
        Map<String, String> settings = Map.of(
                "client.id", words[2],
                "enable.idempotence", words[3],
                "max.block.ms", "6000",
                "request.timeout.ms", "1500",
                "delivery.timeout.ms", "6000",
                "linger.ms", "0");
        try (KafkaProducer<String, String> producer = producer(words[1], settings)) {
            send(producer, words[2]);
            return "";
        } catch (ExecutionException error) {
            return nameOf(error);
        }
    }

    static String consume(String[] words) {
        try (KafkaConsumer<String, String> consumer = consumer(words[1], words[3], Map.of())) {
            consumer.subscribe(List.of(words[2]));
            String seen = "";
            long end = System.currentTimeMillis() + READ_MS;
            while (System.currentTimeMillis() < end) {
                try {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                    for (ConsumerRecord<String, String> record : records)
                        return seen + "|" + record.value();
                } catch (RuntimeException error) {
                    if (!seen.isEmpty()) continue;
                    seen = nameOf(error);
                    end = System.currentTimeMillis() + MS_AFTER_AN_ERROR;
                }
            }
            return seen + "|";
        }
    }

    // What a member of a group sees after it has read the first record.
    static class Member implements ConsumerRebalanceListener {
        final Set<String> seen = new LinkedHashSet<>();
        final long patienceMs;
        boolean isReady;
        boolean hasSecond;
        boolean isOver;
        long end = System.currentTimeMillis() + READ_MS;

        Member(String seconds) {
            patienceMs = 1000 * Long.parseLong(seconds);
        }

        void notes(String what) {
            if (isReady) seen.add(what);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            notes("revoked");
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            notes("lost");
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            notes("assigned");
        }

        String run(String[] words) {
            Map<String, String> settings = Map.of(
                    "enable.auto.commit", "false",
                    "heartbeat.interval.ms", "300",
                    "max.poll.records", "1");
            try (KafkaConsumer<String, String> consumer = consumer(words[1], words[3], settings)) {
                consumer.subscribe(List.of(words[2]), this);
                while (!isOver && System.currentTimeMillis() < end) {
                    try {
                        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200)))
                            read(consumer, record.value());
                    } catch (KafkaException error) {
                        notes("`" + nameOf(error) + "`");
                    }
                }
                isReady = false; // Its end is no part of the situation.
            }
            if (!hasSecond) seen.add("reads no more");
            return String.join(", ", seen);
        }

        void read(KafkaConsumer<String, String> consumer, String value) {
            if (value.equals("first")) {
                notes("reads the first again");
            } else {
                notes("reads on");
                hasSecond = true;
            }
            try {
                consumer.commitSync();
            } catch (KafkaException error) {
                notes("commit: `" + nameOf(error) + "`");
                if (hasSecond) end = Math.min(end, System.currentTimeMillis() + MS_AFTER_AN_ERROR);
                return;
            }
            if (!isReady) {
                isReady = true;
                end = System.currentTimeMillis() + patienceMs;
                say("! ready");
            }
            isOver = hasSecond;
        }
    }

    static String transact(String[] words) throws Exception {
        Map<String, String> settings = Map.of("transactional.id", words[3], "linger.ms", "0");
        try (KafkaProducer<String, String> producer = producer(words[1], settings)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, words[2]);
            readyAndWait();
            String first;
            try {
                send(producer, words[2]);
                producer.commitTransaction();
                return "is committed";
            } catch (KafkaException | ExecutionException error) {
                first = "`" + nameOf(error) + "`";
            }
            try {
                producer.abortTransaction();
                producer.beginTransaction();
                send(producer, words[2]);
                producer.commitTransaction();
                return first + ", aborts, the next is committed";
            } catch (KafkaException | ExecutionException error) {
                return first + ", the producer is over";
            }
        }
    }

    static String create(String[] words) throws Exception {
        try (Admin admin = Admin.create(with(words[1], Map.of()))) {
            admin.createTopics(List.of(new NewTopic(words[2], 1, (short) 1))).all().get();
            return "";
        } catch (ExecutionException error) {
            return nameOf(error);
        }
    }

    static String logIn(String[] words) throws Exception {
        String module = "org.apache.kafka.common.security.scram.ScramLoginModule required";
        String login = module + " username=\"%s\" password=\"%s\" tokenauth=\"true\";";
        Map<String, String> settings = Map.of(
                "security.protocol", "SASL_PLAINTEXT",
                "sasl.mechanism", "SCRAM-SHA-256",
                "sasl.jaas.config", login.formatted(words[3], words[4]),
                "max.block.ms", "6000",
                "request.timeout.ms", "1500",
                "delivery.timeout.ms", "6000",
                "linger.ms", "0");
        try (KafkaProducer<String, String> producer = producer(words[1], settings)) {
            send(producer, words[2]);
            readyAndWait();
            send(producer, words[2]);
            return "";
        } catch (ExecutionException error) {
            return nameOf(error);
        }
    }
}
