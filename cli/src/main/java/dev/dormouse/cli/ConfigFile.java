package dev.dormouse.cli;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Options from a YAML file, as with {@code vllm serve --config}: each key is an option's name
 * without its dashes. They stand before the command line's own options, so that those win. A key
 * that is no option is an error like any other unknown option.
 */
final class ConfigFile {
    private static final String OPTION = "--config";

    private ConfigFile() {}

    /** The arguments, with {@code --config FILE} replaced by the file's options. */
    static List<String> expand(List<String> arguments) {
        List<String> fromFiles = new ArrayList<>();
        List<String> rest = new ArrayList<>();
        for (int i = 0; i < arguments.size(); i++) {
            String argument = arguments.get(i);
            if (argument.equals(OPTION) && i + 1 < arguments.size()) {
                fromFiles.addAll(read(Path.of(arguments.get(++i))));
            } else if (argument.startsWith(OPTION + "=")) {
                fromFiles.addAll(read(Path.of(argument.substring(OPTION.length() + 1))));
            } else {
                rest.add(argument);
            }
        }
        if (!fromFiles.isEmpty()) {
            rest.addAll(rest.isEmpty() ? 0 : 1, fromFiles);
        }
        return rest;
    }

    private static List<String> read(Path file) {
        try {
            return options(file, new YAMLMapper().readTree(Files.readString(file)));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(
                    OPTION + " " + file + " is not valid YAML: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw new IllegalArgumentException(OPTION + " " + file + " cannot be read: " + e, e);
        }
    }

    private static List<String> options(Path file, JsonNode root) {
        if (!root.isObject()) {
            throw new IllegalArgumentException(
                    OPTION + " " + file + " must hold a mapping of option names to values");
        }
        List<String> options = new ArrayList<>();
        root.properties()
                .forEach(
                        entry -> {
                            JsonNode value = entry.getValue();
                            Iterable<JsonNode> values = value.isArray() ? value : List.of(value);
                            for (JsonNode one : values) {
                                if (!one.isValueNode()) {
                                    throw new IllegalArgumentException(
                                            OPTION
                                                    + " "
                                                    + file
                                                    + ": "
                                                    + entry.getKey()
                                                    + " must be a value or a list of values");
                                }
                                options.add("--" + entry.getKey() + "=" + one.asText());
                            }
                        });
        return options;
    }
}
