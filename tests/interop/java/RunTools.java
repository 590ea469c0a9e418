// Run several of Kafka's command-line tools in one JVM: starting one costs more than what it does.
//
// Standard input has one tool a line: its class, its arguments and what it is to read, separated by
// tabs, the last as base64. For each of them one line is printed: exit status, standard output and
// standard error, the latter two as base64.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

public class RunTools {
    static class Exited extends RuntimeException {}

    static Integer status;

    public static void main(String[] none) throws Exception {
        Exit.Procedure exit = (code, message) -> {
            // Some tools catch everything, this too, and exit once more: the first is what is meant.
            status = status == null ? code : status;
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            answers.println(run(Arrays.asList(line.split("\t", -1))));
        answers.flush();
        Runtime.getRuntime().halt(0);
    }

    static String run(List<String> command) throws Exception {
        String input = command.get(command.size() - 1);
        String[] arguments = command.subList(1, command.size() - 1).toArray(new String[0]);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(input)));
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        status = null;
        try {
            Class.forName(command.get(0)).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (java.lang.reflect.InvocationTargetException error) {
            if (!(error.getCause() instanceof Exited)) {
                error.getCause().printStackTrace();
                status = status == null ? 1 : status;
            }
        }
        Base64.Encoder text = Base64.getEncoder();
        return (status == null ? 0 : status) + "\t" + text.encodeToString(out.toByteArray())
            + "\t" + text.encodeToString(err.toByteArray());
    }
}
