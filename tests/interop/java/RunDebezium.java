import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.FileReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Runs Debezium's engine with the properties of a file; prints each event's value as a line. Ends with its input. */
public class RunDebezium {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0], StandardCharsets.UTF_8)) {
            settings.load(file);
        }
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(settings)
            .using((isDone, message, error) -> {
                if (error != null) {
                    error.printStackTrace();
                }
                if (!isDone) {
                    System.err.println(message);
                }
            })
            .notifying(event -> {
                if (event.value() != null) {
                    out.println(event.value());
                }
            })
            .build();
        ExecutorService running = Executors.newSingleThreadExecutor();
        running.execute(engine);
        while (System.in.read() >= 0) {
        }
        engine.close();
        running.shutdown();
    }
}
