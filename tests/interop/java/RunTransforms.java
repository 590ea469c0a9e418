import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Applies Kafka Connect's transformations and predicates: a case a line in, what became of its record a line out. */
public class RunTransforms {
    private static final ObjectMapper JSON =
        new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                apply(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", error.getMessage());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static JsonConverter converter(boolean schemas, boolean isKey) {
        JsonConverter made = new JsonConverter();
        made.configure(Map.of("schemas.enable", String.valueOf(schemas)), isKey);
        return made;
    }

    private static SchemaAndValue read(JsonConverter converter, JsonNode text) {
        byte[] bytes = text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
        return converter.toConnectData("t", bytes);
    }

    private static String written(JsonConverter converter, org.apache.kafka.connect.data.Schema schema, Object value) {
        byte[] bytes = converter.fromConnectData("t", schema, value);
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void apply(JsonNode given, ObjectNode answer) throws Exception {
        Configurable made = (Configurable) Class.forName(given.get("type").asText())
            .getDeclaredConstructor().newInstance();
        Map<String, Object> config = new HashMap<>();
        given.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().asText()));
        made.configure(config);
        JsonConverter converter = converter(given.get("schemas").asBoolean(), false);
        SchemaAndValue key = read(converter, given.get("key"));
        SchemaAndValue value = read(converter, given.get("value"));
        JsonNode at = given.get("timestamp");
        ConnectRecord record = new SinkRecord(given.get("topic").asText(), 3, key.schema(), key.value(),
            value.schema(), value.value(), 42, at.isNull() ? null : at.asLong(), TimestampType.CREATE_TIME);
        JsonConverter withSchema = converter(true, false);
        for (JsonNode one : given.get("headers")) {
            SchemaAndValue header = read(withSchema, one.get(1));
            record.headers().add(one.get(0).asText(), header);
        }
        if (made instanceof Predicate) {
            answer.put("test", ((Predicate) made).test(record));
            return;
        }
        ConnectRecord changed = ((Transformation) made).apply(record);
        answer.put("dropped", changed == null);
        if (changed == null) return;
        answer.put("topic", changed.topic());
        JsonNode then = JSON.valueToTree(changed.timestamp());
        answer.set("timestamp", then);
        answer.put("key", written(converter, changed.keySchema(), changed.key()));
        answer.put("value", written(converter, changed.valueSchema(), changed.value()));
        ArrayNode headers = answer.putArray("headers");
        for (Object one : changed.headers()) {
            Header header = (Header) one;
            headers.addArray().add(header.key()).add(written(withSchema, header.schema(), header.value()));
        }
    }
}
