package dev.dormouse.cli.log;

import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.LayoutBase;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import org.jspecify.annotations.Nullable;

/** One event as a line: time, level, logger, message; a stack trace follows on its own lines. */
final class LogLine extends LayoutBase<ILoggingEvent> {
    /** Of what is on the class path, the only one that logs to SLF4J itself. */
    private static final String SLF4J_USER = "io.micrometer.";

    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX");

    private final DateTimeFormatter time = TIME.withZone(ZoneId.systemDefault());

    @Override
    public String doLayout(ILoggingEvent event) {
        StringBuilder line = new StringBuilder(256);
        time.formatTo(Instant.ofEpochMilli(event.getTimeStamp()), line);
        String level = event.getLevel().toString();
        line.append(' ').append(level).repeat(' ', Math.max(1, 6 - level.length()));
        line.append(event.getLoggerName()).append(" - ").append(message(event));
        line.append(System.lineSeparator());
        @Nullable IThrowableProxy thrown = event.getThrowableProxy();
        if (thrown != null) {
            line.append(ThrowableProxyUtil.asString(thrown)).append(System.lineSeparator());
        }
        return line.toString();
    }

    /**
     * The bridge from System.Logger has put the arguments into the message, and passes them on as
     * well. Logback would put them in again, at every {@code {}} that a value brought along.
     */
    private static String message(ILoggingEvent event) {
        boolean bridged = !event.getLoggerName().startsWith(SLF4J_USER);
        return bridged ? event.getMessage() : event.getFormattedMessage();
    }
}
