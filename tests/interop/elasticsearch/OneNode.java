import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** Runs one Elasticsearch node from its jars, in the foreground: OneNode HOME PORT. */
public class OneNode {
    public static void main(String[] arguments) throws Exception {
        Path home = Paths.get(arguments[0]).toAbsolutePath();
        int port = Integer.parseInt(arguments[1]);
        LogConfigurator.configureWithoutConfig(Settings.builder().put("logger.level", "WARN").build());
        Settings settings = Settings.builder()
            .put("path.home", home).put("path.data", home.resolve("data"))
            .put("cluster.name", "tests").put("node.name", "n1").put("network.host", "127.0.0.1")
            .put("http.port", port).put("transport.port", Integer.parseInt(arguments[2]))
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false).build();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings, Map.of(), home.resolve("config"), () -> "n1");
        PluginsLoader plugins = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(home.resolve("modules")),
            PluginsLoader.loadPluginsBundles(home.resolve("plugins")), Map.of(), false);
        new Node(environment, plugins).start();
        Thread.currentThread().join();
    }
}
