import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** Reads texts, one a line, in hexadecimal digits of UTF-16; writes their properties so, or `!`. */
public class ReadProperties {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder output = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Properties properties = new Properties();
            try {
                properties.load(new StringReader(decoded(line)));
                for (Map.Entry<?, ?> each : new TreeMap<>(properties).entrySet())
                    output.append(encoded(each.getKey())).append("=")
                        .append(encoded(each.getValue())).append(" ");
            } catch (IllegalArgumentException malformed) {
                output.append("!");
            }
            output.append("\n");
        }
        System.out.print(output);
    }

    private static String decoded(String digits) {
        StringBuilder text = new StringBuilder();
        for (int each = 0; each < digits.length(); each += 4)
            text.append((char) Integer.parseInt(digits.substring(each, each + 4), 16));
        return text.toString();
    }

    private static String encoded(Object text) {
        StringBuilder digits = new StringBuilder();
        for (char each : text.toString().toCharArray())
            digits.append(String.format("%04x", (int) each));
        return digits.toString();
    }
}
