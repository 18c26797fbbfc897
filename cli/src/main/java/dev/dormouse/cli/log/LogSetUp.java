package dev.dormouse.cli.log;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.JsonEncoder;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ConfiguratorRank;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.encoder.Encoder;
import ch.qos.logback.core.encoder.LayoutWrappingEncoder;
import ch.qos.logback.core.spi.ContextAwareBase;
import org.slf4j.LoggerFactory;

/**
 * Sends the log to standard error. In Java, since reading a configuration file costs each start a
 * third of a second; whoever wants a file names it with {@code -Dlogback.configurationFile}.
 */
@ConfiguratorRank(ConfiguratorRank.CUSTOM_NORMAL_PRIORITY)
public final class LogSetUp extends ContextAwareBase implements Configurator {
    private static final String FILE_PROPERTY = "logback.configurationFile";

    /** {@code json} for one JSON object per event, else text. */
    private static final String FORMAT_VARIABLE = "DORMOUSE_LOG_FORMAT";

    /** Made by Logback, which finds it as a service. */
    public LogSetUp() {}

    /** Nothing is logged from now on. */
    public static void silence() {
        if (LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME) instanceof Logger root) {
            root.setLevel(Level.OFF);
        }
    }

    @Override
    public ExecutionStatus configure(LoggerContext context) {
        if (System.getProperty(FILE_PROPERTY) != null) {
            return ExecutionStatus.INVOKE_NEXT_IF_ANY;
        }
        Encoder<ILoggingEvent> encoder =
                encoder(System.getenv().getOrDefault(FORMAT_VARIABLE, "text"));
        encoder.setContext(context);
        encoder.start();

        ConsoleAppender<ILoggingEvent> appender = new ConsoleAppender<>();
        appender.setContext(context);
        appender.setName("stderr");
        appender.setTarget("System.err");
        appender.setEncoder(encoder);
        appender.start();

        Logger root = context.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
        root.setLevel(Level.INFO);
        root.addAppender(appender);
        // Helidon says with each start and stop what our own lines say.
        context.getLogger("io.helidon").setLevel(Level.WARN);
        return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
    }

    /** How events are written. */
    static Encoder<ILoggingEvent> encoder(String format) {
        if (format.equals("json")) {
            JsonEncoder json = new JsonEncoder();
            // The bridge from System.Logger has put the arguments into the message already.
            json.setWithFormattedMessage(false);
            json.setWithMessage(true);
            json.setWithArguments(true);
            json.setWithContext(false);
            json.setWithMDC(false);
            json.setWithSequenceNumber(false);
            return json;
        }
        LayoutWrappingEncoder<ILoggingEvent> text = new LayoutWrappingEncoder<>();
        text.setLayout(new LogLine());
        return text;
    }
}
