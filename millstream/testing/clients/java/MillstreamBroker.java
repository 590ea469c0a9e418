import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A real Kafka-compatible broker that fails on command, as an extension of JUnit 5. Copy this file
 * into your tests; it needs Java 17, JUnit 5, and nothing else.
 *
 * <pre>{@code
 * @RegisterExtension static MillstreamBroker broker = new MillstreamBroker();
 *
 * @Test void ordersAreWrittenOnce() {
 *     var rule = broker.error("Produce", "NOT_LEADER_OR_FOLLOWER").topic("orders").times(3);
 *     ... new KafkaProducer<>(Map.of("bootstrap.servers", broker.bootstrapServers(), ...)) ...
 *     assertEquals(3, rule.hits());
 * }
 * }</pre>
 *
 * The broker starts before the first test of the class and returns to its first state, on another
 * port, after each test. A rule that has hit nothing fails its test. The program is `millstream` of
 * the PATH, or what the variable MILLSTREAM names. With an address, as
 * `new MillstreamBroker("http://127.0.0.1:9644")`, a broker is used that somebody else started with
 * `--testing`; rules end after each test, and nothing else is reset.
 */
public final class MillstreamBroker
        implements BeforeAllCallback, AfterEachCallback, AfterAllCallback, AutoCloseable {
    private static final Duration READY = Duration.ofSeconds(60);
    private static final Duration ANSWER = Duration.ofSeconds(60);

    private final HttpClient http = HttpClient.newHttpClient();
    private final List<String> settings;
    private final List<Rule> rules = new ArrayList<>();
    private String url;
    private Process process;
    private Path folder;
    private String bootstrapServers;

    /** A broker of its own, with Kafka's settings: {@code Map.of("num.partitions", "3")}. */
    public MillstreamBroker(Map<String, String> settings) {
        this.settings = settings.entrySet().stream().map(each -> each.getKey() + "=" + each.getValue()).toList();
    }

    public MillstreamBroker() {
        this(Map.of());
    }

    /** A broker that runs with {@code --testing}; its metrics are served at this address, with {@code user:password@} if it asks. */
    public MillstreamBroker(String url) {
        this(Map.of());
        this.url = url.replaceAll("/+$", "");
    }

    // --- its life ---

    /** Start the broker and return when it is ready; nothing happens for one with an address. */
    public MillstreamBroker start() throws IOException {
        if (url != null) {
            return this;
        }
        folder = Files.createTempDirectory("millstream-");
        var program = System.getenv().getOrDefault("MILLSTREAM", "millstream");
        var command = new ArrayList<>(List.of(program, "broker", "start", "--testing", "--exit-with-parent"));
        for (var setting : List.of("listeners=PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms=0",
                "offsets.topic.num.partitions=5", "transaction.state.log.num.partitions=5",
                "log.dirs=" + folder.resolve("data"))) {
            command.addAll(List.of("--override", setting));
        }
        for (var setting : settings) {
            command.addAll(List.of("--override", setting));
        }
        process = new ProcessBuilder(command).redirectErrorStream(true).start();
        var ready = new CompletableFuture<String>();
        var reader = new Thread(() -> read(ready), "millstream-log");
        reader.setDaemon(true);
        reader.start();
        try {
            bootstrapServers = ready.get(READY.toMillis(), TimeUnit.MILLISECONDS);
            snapshot();
        } catch (Exception error) {
            close();
            throw new IOException("the broker did not start: " + error.getMessage(), error);
        }
        return this;
    }

    private void read(CompletableFuture<String> ready) {
        var said = new StringBuilder();
        try (var lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line; (line = lines.readLine()) != null; ) {
                if (line.contains("health and metrics on ")) {
                    url = line.replaceAll(".*health and metrics on (\\S+).*", "$1");
                } else if (line.matches("millstream broker \\d+ ready on \\S+.*")) {
                    ready.complete(line.replaceAll(".* ready on (\\S+).*", "$1"));
                }
                if (!ready.isDone()) {
                    said.append(line).append('\n');
                }
            }
        } catch (IOException error) {
            said.append(error);
        }
        ready.completeExceptionally(new IOException(said.toString()));
    }

    /** Stop the broker and remove its files. */
    @Override
    public void close() throws IOException {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        process = null;
        url = null;
        try (Stream<Path> files = Files.walk(folder)) {
            for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        start();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        try {
            clear(context.getExecutionException().isPresent());
        } finally {
            if (process != null) {
                restore();
            }
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
        close();
    }

    /** The address for clients, as host:port; another one after each test. */
    public String bootstrapServers() {
        if (bootstrapServers == null) {
            throw new IllegalStateException("the address of clients is known for a broker that this class starts");
        }
        return bootstrapServers;
    }

    // --- faults: each is armed by the word that says when it acts ---

    /** Answer with an error, by Kafka's names; the work is not done. */
    public Fault error(String api, String error) {
        return new Fault("error", api).with("error", error);
    }

    /** Wait before a request is handled. */
    public Fault delay(String api, Duration time) {
        return new Fault("delay", api).with("ms", time.toMillis());
    }

    /** Tell the client to wait, and read nothing from it for this time. */
    public Fault throttle(String api, Duration time) {
        return new Fault("throttle", api).with("ms", time.toMillis());
    }

    /** Any kind of /openapi.json: lose_request, lose_answer, close, reset, tear, damage_records. */
    public Fault fault(String kind, String api) {
        return new Fault(kind, api);
    }

    /** Drop every request of one client. */
    public Fault blackHole(String clientId) {
        return new Fault("black_hole", null).clientId(clientId);
    }

    /** End all rules; throw an AssertionError if one has hit nothing, unless that is allowed. */
    public void clear(boolean allowUnused) {
        var unused = rules.stream().filter(rule -> rule.hits() == 0).map(rule -> rule.what).toList();
        rules.clear();
        call("DELETE", "/faults", null);
        if (!unused.isEmpty() && !allowUnused) {
            throw new AssertionError("faults that hit nothing: " + String.join("; ", unused));
        }
    }

    /** A fault that is not armed so far. */
    public final class Fault {
        private final Map<String, Object> rule = new LinkedHashMap<>();

        private Fault(String kind, String api) {
            rule.put("kind", kind);
            if (api != null) {
                rule.put("api", api);
            }
        }

        /** One more field of a rule: version, at, bytes, disk. */
        public Fault with(String name, Object value) {
            rule.put(name, value);
            return this;
        }

        /** Do the work first. */
        public Fault after() {
            return with("after", true);
        }

        public Fault topic(String name) {
            return with("topic", name);
        }

        public Fault partition(int number) {
            return with("partition", number);
        }

        public Fault clientId(String id) {
            return with("client_id", id);
        }

        public Fault principal(String name) {
            return with("principal", name);
        }

        public Fault transactionalId(String id) {
            return with("transactional_id", id);
        }

        public Fault group(String id) {
            return with("group", id);
        }

        public Rule once() {
            return times(1);
        }

        public Rule times(int count) {
            return arm(Map.of("times", count));
        }

        /** Hit one call alone: the next one is number 1. */
        public Rule onCall(int number) {
            return arm(Map.of("on_call", number));
        }

        public Rule always() {
            return arm(Map.of("always", true));
        }

        public Rule withProbability(double share, int seed) {
            return arm(Map.of("probability", share, "seed", seed));
        }

        private Rule arm(Map<String, Object> when) {
            rule.put("when", when);
            var armed = (Map<?, ?>) call("POST", "/faults", rule);
            var made = new Rule(number(armed, "id"), Json.text(rule));
            rules.add(made);
            return made;
        }
    }

    /** A fault that is armed. */
    public final class Rule {
        private final long id;
        private final String what;

        private Rule(long id, String what) {
            this.id = id;
            this.what = what;
        }

        /** The calls that it has hit. */
        public long hits() {
            return number((Map<?, ?>) call("GET", "/faults/" + id, null), "hits");
        }

        /** Wait until it has hit a call; throw an AssertionError if it has not in this time. */
        public void waitHit(Duration timeout) throws InterruptedException {
            var deadline = System.nanoTime() + timeout.toNanos();
            while (hits() == 0) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError(what + " has hit nothing in " + timeout);
                }
                Thread.sleep(10);
            }
        }
    }

    // --- what clients asked ---

    /** One call of a client; {@code fields} has all that the broker tells of it. */
    public record Call(String api, long version, String clientId, List<String> errors, Map<String, Object> fields) {}

    /** The calls of clients, the oldest first; filters are api, client_id, topic, group, ... */
    @SuppressWarnings("unchecked")
    public List<Call> requests(Map<String, String> filters) {
        var found = new ArrayList<Call>();
        for (long after = 0, last = -1; last != after; ) {
            last = after;
            var query = new StringBuilder("/requests?after=" + after);
            filters.forEach((name, value) -> query.append('&').append(name).append('=')
                    .append(URLEncoder.encode(value, StandardCharsets.UTF_8)));
            var page = (Map<String, Object>) call("GET", query.toString(), null);
            for (var each : (List<Map<String, Object>>) page.get("requests")) {
                found.add(new Call((String) each.get("api"), number(each, "version"),
                        (String) each.get("client_id"), (List<String>) each.get("errors"), each));
            }
            after = number(page, "last_id");
        }
        return found;
    }

    /** Forget the calls so far. */
    public void clearRequests() {
        call("DELETE", "/requests", null);
    }

    // --- time and state ---

    /** Move the broker's time forward; what is due by then is done. */
    public void advance(Duration time) {
        call("POST", "/clock", Map.of("advance_ms", time.toMillis()));
    }

    /** The broker's time, in milliseconds since 1970 UTC. */
    public long nowMs() {
        return number((Map<?, ?>) call("GET", "/clock", null), "timestamp_ms");
    }

    /** Keep the broker's state for {@link #restore}; all clients are disconnected. */
    public void snapshot() {
        call("POST", "/snapshot", null);
    }

    /** Return to the snapshot, on another port: earlier clients do not come back; rules end. */
    public void restore() {
        rules.clear();
        var answer = (Map<?, ?>) call("POST", "/restore", Map.of("new_ports", true));
        bootstrapServers = (String) ((Map<?, ?>) answer.get("listeners")).values().iterator().next();
    }

    private static long number(Map<?, ?> object, String name) {
        return ((Number) object.get(name)).longValue();
    }

    private Object call(String method, String path, Object body) {
        var content = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(Json.text(body));
        var address = URI.create(url + path);
        var builder = HttpRequest.newBuilder(address).method(method, content).timeout(ANSWER);
        if (address.getUserInfo() != null) {
            var user = address.getUserInfo().getBytes(StandardCharsets.UTF_8);
            builder.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(user));
        }
        var request = builder.build();
        try {
            var answer = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() >= 400) {
                throw new IllegalArgumentException(method + " " + path + ": " + answer.body());
            }
            return answer.body().isBlank() ? null : new Json(answer.body()).value();
        } catch (IOException error) {
            throw new UncheckedIOException("the broker's control does not answer", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }

    /** JSON of the control: objects are maps, arrays lists, whole numbers longs. */
    private static final class Json {
        private final String source;
        private int at;

        Json(String source) {
            this.source = source;
        }

        static String text(Object value) {
            if (value instanceof Map<?, ?> map) {
                return map.entrySet().stream().map(each -> text(each.getKey()) + ":" + text(each.getValue()))
                        .reduce((left, right) -> left + "," + right).map(all -> "{" + all + "}").orElse("{}");
            }
            if (!(value instanceof String text)) {
                return String.valueOf(value);
            }
            var quoted = new StringBuilder("\"");
            text.chars().forEach(each -> quoted.append(each < ' ' || each == '"' || each == '\\'
                    ? String.format("\\u%04x", each) : String.valueOf((char) each)));
            return quoted.append('"').toString();
        }

        Object value() {
            switch (next()) {
                case '{':
                    var map = new LinkedHashMap<String, Object>();
                    at++;
                    while (next() != '}') {
                        var name = (String) value();
                        next();
                        at++;
                        map.put(name, value());
                        at += next() == ',' ? 1 : 0;
                    }
                    at++;
                    return map;
                case '[':
                    var list = new ArrayList<>();
                    at++;
                    while (next() != ']') {
                        list.add(value());
                        at += next() == ',' ? 1 : 0;
                    }
                    at++;
                    return list;
                case '"':
                    return string();
                default:
                    return word();
            }
        }

        private char next() {
            while (Character.isWhitespace(source.charAt(at))) {
                at++;
            }
            return source.charAt(at);
        }

        private String string() {
            var text = new StringBuilder();
            for (at++; source.charAt(at) != '"'; at++) {
                if (source.charAt(at) != '\\') {
                    text.append(source.charAt(at));
                } else if (source.charAt(++at) == 'u') {
                    text.append((char) Integer.parseInt(source.substring(at + 1, at + 5), 16));
                    at += 4;
                } else {
                    var escape = "bfnrt".indexOf(source.charAt(at));
                    text.append(escape < 0 ? source.charAt(at) : "\b\f\n\r\t".charAt(escape));
                }
            }
            at++;
            return text.toString();
        }

        private Object word() {
            var begin = at;
            while (at < source.length() && ",]} \r\n\t".indexOf(source.charAt(at)) < 0) {
                at++;
            }
            var word = source.substring(begin, at);
            return switch (word) {
                case "null" -> null;
                case "true", "false" -> word.equals("true");
                default -> word.matches("-?\\d+") ? (Object) Long.parseLong(word) : (Object) Double.parseDouble(word);
            };
        }
    }
}
