// A stock Java client beside a broker with faults: one line of input is one thing to do, and one
// line of output that begins with "> " is what the program of a user sees. The others are a log.
//
//   produce TAB bootstrap servers TAB topic TAB idempotent (true or false)
//   consume TAB bootstrap servers TAB topic TAB group

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class RunFaultyCalls {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            System.out.println("> " + (words[0].equals("produce") ? produce(words) : consume(words)));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static String produce(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[1]);
        settings.put("client.id", words[2]);
        settings.put("enable.idempotence", words[3]);
        settings.put("max.block.ms", "6000");
        settings.put("request.timeout.ms", "1500");
        settings.put("delivery.timeout.ms", "6000");
        settings.put("linger.ms", "0");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(words[2], 0, null, "value")).get();
            return "";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
    }

    static String consume(String[] words) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[1]);
        settings.put("group.id", words[3]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("request.timeout.ms", "1500");
        settings.put("fetch.max.wait.ms", "300");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(words[2]));
            String seen = "";
            for (long end = System.currentTimeMillis() + 60000; System.currentTimeMillis() < end; ) {
                try {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                    for (ConsumerRecord<String, String> record : records)
                        return seen + "|" + record.value();
                } catch (RuntimeException error) {
                    if (!seen.isEmpty()) continue;
                    seen = error.getClass().getSimpleName();
                    end = System.currentTimeMillis() + 4000;
                }
            }
            return seen + "|";
        }
    }
}
