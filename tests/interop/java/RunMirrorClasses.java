import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.OffsetSyncStore;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Asks MirrorMaker 2's own classes: one JSON object in, one out. */
public class RunMirrorClasses {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicPartition PLACE = new TopicPartition("topic", 0);

    public static void main(String[] arguments) throws Exception {
        JsonNode asked = JSON.readTree(System.in);
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        for (JsonNode each : asked.path("syncs")) {
            TopicPartition at = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
            add(records, new OffsetSync(at, each.get(2).asLong(), each.get(3).asLong()));
        }
        for (JsonNode each : asked.path("checkpoints")) {
            TopicPartition at = new TopicPartition(each.get(1).asText(), each.get(2).asInt());
            add(records, new Checkpoint(each.get(0).asText(), at, each.get(3).asLong(), each.get(4).asLong(), each.get(5).asText()));
        }
        for (JsonNode each : asked.path("heartbeats")) {
            add(records, new Heartbeat(each.get(0).asText(), each.get(1).asText(), each.get(2).asLong()));
        }
        ArrayNode beats = answer.putArray("beats");
        for (JsonNode each : asked.path("beats")) {
            byte[] key = HexFormat.of().parseHex(each.get(0).asText());
            byte[] value = HexFormat.of().parseHex(each.get(1).asText());
            Heartbeat beat = Heartbeat.deserializeRecord(new ConsumerRecord<>("heartbeats", 0, 0, key, value));
            beats.addArray().add(beat.sourceClusterAlias()).add(beat.targetClusterAlias()).add(beat.timestamp());
        }
        ArrayNode stores = answer.putArray("stores");
        for (JsonNode each : asked.path("stores")) {
            translate(stores.addArray(), each);
        }
        if (asked.has("group")) {
            ask(answer, asked);
        }
        System.out.println(JSON.writeValueAsString(answer));
    }

    private static void add(ArrayNode records, Object record) throws Exception {
        for (String part : new String[] {"recordKey", "recordValue"}) {
            records.add(HexFormat.of().formatHex((byte[]) call(record, part)));
        }
    }

    private static Object call(Object of, String name) throws Exception {
        Method method = of.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    private static void translate(ArrayNode found, JsonNode asked) throws Exception {
        Constructor<OffsetSyncStore> make = OffsetSyncStore.class.getDeclaredConstructor();
        make.setAccessible(true);
        OffsetSyncStore store = make.newInstance();
        Field readToEnd = OffsetSyncStore.class.getDeclaredField("readToEnd");
        readToEnd.setAccessible(true);
        readToEnd.set(store, true);
        Method handle = OffsetSyncStore.class.getDeclaredMethod("handleRecord", ConsumerRecord.class);
        handle.setAccessible(true);
        for (JsonNode each : asked.get("syncs")) {
            OffsetSync sync = new OffsetSync(PLACE, each.get(0).asLong(), each.get(1).asLong());
            handle.invoke(store, new ConsumerRecord<>("syncs", 0, 0, (byte[]) call(sync, "recordKey"), (byte[]) call(sync, "recordValue")));
        }
        for (JsonNode each : asked.get("offsets")) {
            OptionalLong offset = store.translateDownstream("group", PLACE, each.asLong());
            found.add(offset.orElse(-1));
        }
    }

    private static void ask(ObjectNode answer, JsonNode asked) throws Exception {
        Map<String, Object> client = Map.of("bootstrap.servers", asked.get("servers").asText());
        String alias = asked.get("alias").asText();
        ObjectNode offsets = answer.putObject("offsets");
        Map<TopicPartition, OffsetAndMetadata> found =
            RemoteClusterUtils.translateOffsets(client, alias, asked.get("group").asText(), Duration.ofSeconds(20));
        found.forEach((at, offset) -> offsets.put(at.toString(), offset.offset()));
        answer.put("hops", RemoteClusterUtils.replicationHops(client, alias));
        ArrayNode upstream = answer.putArray("upstream");
        RemoteClusterUtils.upstreamClusters(client).stream().sorted().forEach(upstream::add);
    }
}
