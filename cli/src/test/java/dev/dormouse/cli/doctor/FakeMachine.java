package dev.dormouse.cli.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** A machine made of files in a temporary folder and of what its programs answer. */
final class FakeMachine {
    private final Path root;
    private final Map<String, String> environment = new HashMap<>();
    private final Map<String, String> answers = new HashMap<>();

    FakeMachine(Path root) {
        this.root = root;
    }

    FakeMachine file(String absolutePath, String text) throws IOException {
        Path file = root.resolve("." + absolutePath).normalize();
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
        return this;
    }

    FakeMachine variable(String name, String value) {
        environment.put(name, value);
        return this;
    }

    /** Lets the command line, words joined by spaces, answer so. */
    FakeMachine answer(String command, String... lines) {
        answers.put(command, String.join("\n", Arrays.asList(lines)) + "\n");
        return this;
    }

    Machine machine() {
        return new Machine(
                root,
                environment,
                command -> Optional.ofNullable(answers.get(String.join(" ", command))));
    }
}
