package dev.dormouse.cli.serve;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * An amount of memory as a person writes it: {@code 512MiB}, {@code 2G}, {@code 1073741824}.
 *
 * @param bytes how much it is
 */
record MemorySize(long bytes) {
    private static final Pattern FORM = Pattern.compile("(\\d{1,15})\\s*([a-z]*)");
    private static final Map<String, Long> UNITS =
            Map.ofEntries(
                    Map.entry("", 1L),
                    Map.entry("b", 1L),
                    Map.entry("k", 1L << 10),
                    Map.entry("kib", 1L << 10),
                    Map.entry("kb", 1_000L),
                    Map.entry("m", 1L << 20),
                    Map.entry("mib", 1L << 20),
                    Map.entry("mb", 1_000_000L),
                    Map.entry("g", 1L << 30),
                    Map.entry("gib", 1L << 30),
                    Map.entry("gb", 1_000_000_000L));

    /** Reads a size for picocli. */
    static final class Converter implements ITypeConverter<MemorySize> {
        @Override
        public MemorySize convert(String text) {
            Matcher matcher = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
            Long unit = matcher.matches() ? UNITS.get(matcher.group(2)) : null;
            if (unit == null) {
                throw new TypeConversionException(
                        "'" + text + "' is not a size; write it as 512MiB, 2GiB or in bytes");
            }
            try {
                return new MemorySize(Math.multiplyExact(Long.parseLong(matcher.group(1)), unit));
            } catch (ArithmeticException e) {
                throw new TypeConversionException(
                        "'" + text + "' is more memory than there are addresses");
            }
        }
    }
}
