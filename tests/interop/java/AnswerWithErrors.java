// What Apache Kafka answers to a request that fails as a whole: where it puts the error.
//
// A line of input is API key, version, error code and the request's body in hexadecimal digits,
// separated by spaces; a line of output is the answer's body, or why there is none.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

public class AnswerWithErrors {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(answer(line.split(" ", -1)));
    }

    static String answer(String[] words) {
        try {
            ApiKeys api = ApiKeys.forId(Integer.parseInt(words[0]));
            short version = Short.parseShort(words[1]);
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            AbstractRequest request =
                AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request;
            Errors error = Errors.forCode(Short.parseShort(words[2]));
            AbstractResponse response = request.getErrorResponse(0, error.exception());
            if (response == null) return "none";
            ByteBuffer bytes = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
            byte[] array = new byte[bytes.remaining()];
            bytes.get(array);
            return HexFormat.of().formatHex(array);
        } catch (Throwable error) {
            return "! " + error;
        }
    }
}
