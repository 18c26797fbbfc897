package dev.dormouse.cli.demo;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import dev.dormouse.cli.fleet.Json;

/** What a demonstration found. */
sealed interface Report permits DemoReport, FaultReport {
    /** Whether everything is as it must be. */
    @JsonProperty("ok")
    boolean ok();

    /** The table that a person reads. */
    String toTable();

    default String toJson() {
        try {
            return Json.MAPPER
                    .writerWithDefaultPrettyPrinter()
                    .writeValueAsString(Json.MAPPER.valueToTree(this));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(
                    "a report of plain values cannot fail to be written", e);
        }
    }
}
