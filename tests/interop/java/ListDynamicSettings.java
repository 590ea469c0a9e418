import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.server.config.DynamicBrokerConfig;

/** Prints every setting of brokers that changes at run time with its scope, tab-separated. */
public class ListDynamicSettings {
    public static void main(String[] arguments) {
        for (Map.Entry<String, String> each : new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes()).entrySet()) {
            System.out.println(each.getKey() + "\t" + each.getValue());
        }
    }
}
