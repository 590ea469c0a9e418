import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The extension of JUnit in millstream/testing/clients/java, as a user has it. */
class MillstreamBrokerTest {
    @RegisterExtension
    static MillstreamBroker broker = new MillstreamBroker(Map.of("num.partitions", "2"));

    private static final Set<String> ADDRESSES = new HashSet<>();

    private static long produce() throws Exception {
        ADDRESSES.add(broker.bootstrapServers());
        Map<String, Object> settings = Map.of("bootstrap.servers", broker.bootstrapServers(), "client.id", "orders-app");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            return producer.send(new ProducerRecord<>("orders", 0, "k", "v \"1\" \\")).get().offset();
        }
    }

    @Test
    void errorsAreRetriedAndTheCallsAreSeen() throws Exception {
        var rule = broker.error("Produce", "NOT_LEADER_OR_FOLLOWER").topic("orders").partition(0).times(2);
        assertEquals(0, produce());
        rule.waitHit(Duration.ofSeconds(5));
        assertEquals(2, rule.hits());
        var calls = broker.requests(Map.of("api", "Produce", "client_id", "orders-app"));
        assertEquals(List.of("NOT_LEADER_OR_FOLLOWER"), calls.get(0).errors());
        assertEquals(3, calls.size());
        broker.clearRequests();
        assertEquals(List.of(), broker.requests(Map.of()));
    }

    @Test
    void anAnswerIsLostAndAnotherLate() throws Exception {
        broker.fault("close", "Produce").after().onCall(1);
        var late = broker.delay("Metadata", Duration.ofMillis(10)).clientId("orders-app").once();
        assertEquals(0, produce(), "an earlier test has left its record");
        assertEquals(1, late.hits());
    }

    @Test
    void thePasswordIsTold() {
        assertEquals(List.of(), new MillstreamBroker(System.getenv("CONTROL_URL")).requests(Map.of()));
    }

    @Test
    void aRuleWithoutAHitFailsItsTest() {
        broker.blackHole("nobody \u00e9").always();
        var error = assertThrows(AssertionError.class, () -> broker.clear(false));
        assertTrue(error.getMessage().contains("nobody"), error.getMessage());
        assertThrows(IllegalArgumentException.class, () -> broker.error("Produce", "NO_SUCH_ERROR").once());
    }

    @Test
    void timeMovesAndTheStateReturns() throws Exception {
        var before = broker.nowMs();
        broker.advance(Duration.ofHours(2));
        assertTrue(broker.nowMs() >= before + 7_200_000);
        produce();
        broker.restore();
        try (var admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            assertEquals(Set.of(), admin.listTopics().names().get());
        }
        assertTrue(broker.nowMs() < before + 7_200_000);
        produce();
        assertTrue(ADDRESSES.size() > 1);
    }
}
