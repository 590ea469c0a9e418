// Lets Apache Kafka's own MetadataImage replay metadata logs and snapshots.
//
// Standard input has one history a line: the records of a log, a blank, those of a snapshot of the
// same moment; records are in hex with commas between. For each history it prints "equal", or the
// two images that came out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;

public class ReplayMetadata {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ");
            MetadataImage log = replay(parts[0]);
            MetadataImage snapshot = replay(parts[1]);
            System.out.println(log.equals(snapshot) ? "equal" : log + " | " + snapshot);
        }
    }

    // One delta for each record: within one delta, Kafka keeps the settings of a topic that both
    // came and went.
    static MetadataImage replay(String records) {
        MetadataImage image = MetadataImage.EMPTY;
        for (String hex : records.split(",")) {
            byte[] bytes = HexFormat.of().parseHex(hex);
            ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            delta.replay(MetadataRecordSerde.INSTANCE.read(readable, bytes.length).message());
            image = delta.apply(MetadataProvenance.EMPTY);
        }
        return image;
    }
}
