package dev.dormouse.connector;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A message of a peer that is one msgpack map: the keys that are known have a type and bounds, all
 * others are passed over, and nothing may follow. A key that comes twice counts as it came last.
 */
final class WireFields {
    private final String what;
    private final WireReader in;
    private final Map<String, Function<String, Object>> known = new HashMap<>();
    private final Map<String, Object> values = new HashMap<>();

    /**
     * A message of which no key is known yet.
     *
     * @param what the message's name, for errors
     */
    WireFields(String what, byte[] bytes, int maxBytes) {
        this.what = what;
        this.in = new WireReader(what, bytes, maxBytes);
    }

    WireFields strings(int maxBytes, String... keys) {
        for (String key : keys) {
            known.put(key, name -> in.string(name, maxBytes));
        }
        return this;
    }

    /** Integers between the bounds, both included. */
    WireFields integers(long min, long max, String... keys) {
        for (String key : keys) {
            known.put(key, name -> in.integer(name, min, max));
        }
        return this;
    }

    WireFields floats(String... keys) {
        for (String key : keys) {
            known.put(key, in::float64);
        }
        return this;
    }

    /** Something of another type, which {@code value} reads. */
    WireFields other(String key, Function<WireReader, Object> value) {
        known.put(key, _ -> value.apply(in));
        return this;
    }

    /**
     * Reads the message.
     *
     * @throws WireException if it is no such map, or a value is not of its type and bounds
     */
    WireFields read(int maxKeys, int maxKeyBytes) {
        int entries = in.mapSize(what, maxKeys);
        for (int i = 0; i < entries; i++) {
            String key = in.string("a key", maxKeyBytes);
            Function<String, Object> value = known.get(key);
            if (value == null) {
                in.skip("an unknown key");
            } else {
                values.put(key, value.apply(key));
            }
        }
        in.end();
        return this;
    }

    @Nullable String string(String key) {
        return (String) values.get(key);
    }

    /** The value, or {@code absent} if the message does not have it. */
    long integer(String key, long absent) {
        return (long) values.getOrDefault(key, absent);
    }

    /** The value, or {@code absent} if the message does not have it. */
    double float64(String key, double absent) {
        return (double) values.getOrDefault(key, absent);
    }

    /** A value of {@link #other}, or null. */
    <T> @Nullable T other(String key, Class<T> type) {
        Object value = values.get(key);
        return value == null ? null : type.cast(value);
    }

    /** True if the message has all of them. */
    boolean has(String... keys) {
        for (String key : keys) {
            if (!values.containsKey(key)) {
                return false;
            }
        }
        return true;
    }

    /** An error about this message. */
    WireException fault(String problem) {
        return in.fault(problem);
    }
}
