package dev.dormouse.cli.log;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator.ExecutionStatus;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.LoggingEvent;
import ch.qos.logback.core.encoder.Encoder;
import ch.qos.logback.core.read.ListAppender;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** What is logged, and how it looks. */
final class LogSetUpTest {
    private final LoggerContext context = new LoggerContext();

    @AfterEach
    void stop() {
        context.stop();
    }

    @Test
    void logbackFindsTheSetUp() {
        LoggerContext used = (LoggerContext) LoggerFactory.getILoggerFactory();

        assertThat(used.getLogger("io.helidon.webserver").getEffectiveLevel())
                .isEqualTo(Level.WARN);
        assertThat(used.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME).getAppender("stderr"))
                .isNotNull();
    }

    @Test
    void ourInformationIsShownAndOnlyWarningsOfHelidon() {
        assertThat(new LogSetUp().configure(context))
                .isEqualTo(ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY);

        assertThat(context.getLogger("dormouse.engine").isInfoEnabled()).isTrue();
        assertThat(context.getLogger("dormouse.engine").isDebugEnabled()).isFalse();
        assertThat(context.getLogger("io.helidon.webserver").isInfoEnabled()).isFalse();
        assertThat(context.getLogger("io.helidon.webserver").isWarnEnabled()).isTrue();
    }

    @Test
    void anEventIsOneLine() {
        assertThat(new LogLine().doLayout(event(Level.INFO, null)))
                .matches(
                        "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}(Z|[+-]\\d\\d:\\d\\d)"
                                + " INFO  dormouse\\.engine - slept: level=1\\R");
        assertThat(new LogLine().doLayout(event(Level.ERROR, null))).contains(" ERROR dormouse.");
    }

    @Test
    void bracesInAValueStayAsTheyAre() {
        ListAppender<ILoggingEvent> events = new ListAppender<>();
        events.start();
        Logger logger =
                ((LoggerContext) LoggerFactory.getILoggerFactory()).getLogger("dormouse.test");
        logger.setLevel(Level.INFO);
        logger.addAppender(events);
        try {
            System.getLogger("dormouse.test")
                    .log(System.Logger.Level.INFO, "kind={0} phases={1}", "wake", Map.of());
        } finally {
            logger.detachAppender(events);
            logger.setLevel(null);
        }

        assertThat(new LogLine().doLayout(events.list.getFirst()).strip())
                .endsWith("dormouse.test - kind=wake phases={}");
    }

    @Test
    void whoLogsToSlf4jHasItsArgumentsPutIn() {
        Logger logger = context.getLogger("io.micrometer.core");
        LoggingEvent event =
                new LoggingEvent(
                        "caller", logger, Level.WARN, "meter={}", null, new Object[] {"m"});

        assertThat(new LogLine().doLayout(event).strip()).endsWith("io.micrometer.core - meter=m");
    }

    @Test
    void aStackTraceFollowsWithItsCause() {
        Exception failure = new IllegalStateException("outer", new ArithmeticException("inner"));

        assertThat(new LogLine().doLayout(event(Level.WARN, failure)).lines())
                .hasSizeGreaterThan(3)
                .contains("java.lang.IllegalStateException: outer")
                .anyMatch(line -> line.contains("java.lang.ArithmeticException: inner"))
                .anyMatch(line -> line.contains("at dev.dormouse.cli.log.LogSetUpTest"));
    }

    @Test
    void asJsonAnEventIsOneObjectWithItsMessageAsItReads() throws Exception {
        Encoder<ILoggingEvent> encoder = LogSetUp.encoder("json");
        encoder.setContext(context);
        encoder.start();
        String text =
                new String(
                        encoder.encode(event(Level.WARN, new IllegalStateException("why"))),
                        StandardCharsets.UTF_8);

        JsonNode json = new ObjectMapper().readTree(text);
        assertThat(json.path("message").asText()).isEqualTo("slept: level=1");
        assertThat(json.path("level").asText()).isEqualTo("WARN");
        assertThat(json.path("loggerName").asText()).isEqualTo("dormouse.engine");
        assertThat(json.path("timestamp").isNumber()).isTrue();
        assertThat(json.path("throwable").path("message").asText()).isEqualTo("why");
        assertThat(text.strip()).doesNotContain("\n");
    }

    private LoggingEvent event(Level level, @Nullable Throwable failure) {
        Logger logger = context.getLogger("dormouse.engine");
        return new LoggingEvent("caller", logger, level, "slept: level=1", failure, null);
    }
}
