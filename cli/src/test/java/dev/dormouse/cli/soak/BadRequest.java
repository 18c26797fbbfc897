package dev.dormouse.cli.soak;

import java.util.List;

/**
 * A request that must be refused, whether the engines sleep or not.
 *
 * @param bytes all of it
 * @param status the only right one
 * @param closes whether the answer must say that the connection ends, since nobody can tell where
 *     the next request would begin
 */
record BadRequest(String bytes, int status, boolean closes) {
    static final List<BadRequest> ALL =
            List.of(
                    body(400, "{\"prompt\":"),
                    body(400, "[1]"),
                    body(400, "{\"prompt\":\"x\",\"top_p\":\"many\"}"),
                    body(400, "{\"prompt\":\"x\",\"n\":0}"),
                    body(400, "{\"prompt\":\"x\",\"temperature\":-1}"),
                    body(400, "{\"prompt\":[999999]}"),
                    body(400, "{\"prompt\":[" + "7,".repeat(300) + "7]}"),
                    body(400, "{\"prompt\":\"\\ud800\"}"),
                    body(400, "{\"prompt\":\"x\",\"response_format\":{\"type\":\"json_object\"}}"),
                    body(404, "{\"prompt\":\"x\",\"model\":\"another\"}"),
                    new BadRequest(post("{", "Content-Length: 20000000"), 413, true),
                    new BadRequest(post("ZZ\r\n{}\r\n", "Transfer-Encoding: chunked"), 400, true),
                    new BadRequest(
                            post("{}", "Content-Type: text/plain", "Content-Length: 2"),
                            400,
                            false),
                    new BadRequest(request("", "GET /v1/completions"), 405, false),
                    new BadRequest(request("", "POST /sleep", "Content-Length: 0"), 404, false));

    private static String post(String body, String... headers) {
        return request(body, "POST " + Question.COMPLETIONS, headers);
    }

    private static String request(String body, String what, String... headers) {
        StringBuilder text = new StringBuilder(what).append(" HTTP/1.1\r\nHost: x\r\n");
        for (String header : headers) {
            text.append(header).append("\r\n");
        }
        return text.append("\r\n").append(body).toString();
    }

    private static BadRequest body(int status, String body) {
        return new BadRequest(Wire.post(Question.COMPLETIONS, "bad", body), status, false);
    }
}
