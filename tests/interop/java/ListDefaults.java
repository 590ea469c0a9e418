import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints every setting of brokers, topics and groups with its type and default, tab-separated.
 *
 * Settings that Kafka calls internal are left out: its documentation does not name them.
 */
public class ListDefaults {
    public static void main(String[] arguments) {
        print("broker", org.apache.kafka.server.config.AbstractKafkaConfig.CONFIG_DEF);
        print("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
        print("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF);
    }

    private static void print(String kind, ConfigDef settings) {
        for (ConfigDef.ConfigKey key : settings.configKeys().values()) {
            if (key.internalConfig) {
                continue;
            }
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "(required)";
            String text = value == null ? "-" : value.isEmpty() ? "\"\"" : value;
            System.out.println(String.join("\t", kind, key.name, key.type.name(), text));
        }
    }
}
