package dev.dormouse.cli.fleet;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** JSON of the engines' answers, and of reports. */
public final class Json {
    public static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JsonProcessingException e) {
            throw new FleetException("not JSON: " + text, e);
        }
    }

    /** Writes what a person may also read, with a line's end. */
    public static void write(Path file, Object report) throws IOException {
        Files.writeString(
                file, MAPPER.valueToTree(report).toPrettyString() + System.lineSeparator());
    }
}
