import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/**
 * Writes and reads with Kafka Connect's converters: a case a line in, what it came to a line out.
 * Values go in and out as a JsonConverter with schemas writes them.
 */
public class RunConverters {
    private static final ObjectMapper JSON =
        new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
    private static final HexFormat HEX = HexFormat.of();
    private static final JsonConverter PLAIN = json(Map.of("schemas.enable", "false"));
    private static final JsonConverter WITH_SCHEMAS =
        json(Map.of("schemas.enable", "true", "replace.null.with.default", "false"));

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode given = JSON.readTree(line);
                if (given.has("bytes")) read(given, answer);
                else write(given, answer);
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", String.valueOf(error.getMessage()));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static JsonConverter json(Map<String, ?> config) {
        JsonConverter made = new JsonConverter();
        made.configure(config, false);
        return made;
    }

    private static Object converter(JsonNode given) throws Exception {
        Map<String, Object> config = new HashMap<>();
        given.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().asText()));
        Object made = Class.forName(given.get("type").asText()).getDeclaredConstructor().newInstance();
        if (made instanceof Converter) ((Converter) made).configure(config, false);
        else ((HeaderConverter) made).configure(config);
        return made;
    }

    private static void write(JsonNode given, ObjectNode answer) throws Exception {
        Object converter = converter(given);
        JsonConverter values = given.get("schemas").asBoolean() ? WITH_SCHEMAS : PLAIN;
        SchemaAndValue value = values.toConnectData("t", given.get("value").asText().getBytes(StandardCharsets.UTF_8));
        byte[] bytes = converter instanceof Converter
            ? ((Converter) converter).fromConnectData("t", value.schema(), value.value())
            : ((HeaderConverter) converter).fromConnectHeader("t", "h", value.schema(), value.value());
        answer.put("bytes", bytes == null ? null : HEX.formatHex(bytes));
    }

    private static void read(JsonNode given, ObjectNode answer) throws Exception {
        Object converter = converter(given);
        byte[] bytes = given.get("bytes").isNull() ? null : HEX.parseHex(given.get("bytes").asText());
        SchemaAndValue value = converter instanceof Converter
            ? ((Converter) converter).toConnectData("t", bytes)
            : ((HeaderConverter) converter).toConnectHeader("t", "h", bytes);
        try {
            byte[] shown = WITH_SCHEMAS.fromConnectData("t", value.schema(), value.value());
            answer.put("value", shown == null ? null : new String(shown, StandardCharsets.UTF_8));
        } catch (RuntimeException error) {
            // What the header converter makes of some texts has a schema that does not fit it.
            answer.put("unwritable", true);
        }
    }
}
