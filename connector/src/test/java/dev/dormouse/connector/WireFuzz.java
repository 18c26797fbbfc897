package dev.dormouse.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.value.ImmutableValue;
import org.msgpack.value.MapValue;
import org.msgpack.value.Value;
import org.msgpack.value.ValueFactory;

/** Makes hostile bytes out of honest ones: damaged as bytes, or well-formed with other contents. */
final class WireFuzz {
    private WireFuzz() {}

    /** Damages bytes whatever they mean: cut, flipped, extended, or announcing other sizes. */
    static byte[] bytes(byte[] honest, SplittableRandom random) {
        byte[] bytes = honest.clone();
        switch (random.nextInt(4)) {
            case 0 -> bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
            case 1 -> {
                for (int i = random.nextInt(1, 9); i > 0 && bytes.length > 0; i--) {
                    bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
                }
            }
            case 2 -> {
                int from = bytes.length;
                bytes = Arrays.copyOf(bytes, from + random.nextInt(1, 300));
                for (int i = from; i < bytes.length; i++) {
                    bytes[i] = (byte) random.nextInt();
                }
            }
            default -> {
                int at = random.nextInt(Math.max(1, bytes.length - 5));
                byte[] headers = {(byte) 0xdd, (byte) 0xdf, (byte) 0xdb, (byte) 0xc6, (byte) 0xc9};
                bytes = Arrays.copyOf(bytes, Math.max(bytes.length, at + 5));
                bytes[at] = headers[random.nextInt(headers.length)];
                for (int i = 1; i < 5; i++) {
                    bytes[at + i] = (byte) random.nextInt();
                }
            }
        }
        return bytes;
    }

    /** Well-formed msgpack in which up to three values are others than in {@code honest}. */
    static byte[] message(byte[] honest, SplittableRandom random) {
        try {
            Value value = MessagePack.newDefaultUnpacker(honest).unpackValue();
            for (int i = random.nextInt(1, 4); i > 0; i--) {
                value = mutated(value, random);
            }
            MessageBufferPacker out = MessagePack.newDefaultBufferPacker();
            out.packValue(value);
            return out.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Value mutated(Value value, SplittableRandom random) {
        if (value.isMapValue() && random.nextInt(12) != 0) {
            return mutatedMap(value.asMapValue(), random);
        }
        if (value.isArrayValue() && !value.asArrayValue().list().isEmpty()) {
            List<Value> elements = new ArrayList<>(value.asArrayValue().list());
            switch (random.nextInt(4)) {
                case 0 -> elements.remove(random.nextInt(elements.size()));
                case 1 -> elements.add(any(random, 0));
                case 2 -> elements.add(elements.get(random.nextInt(elements.size())));
                default -> {
                    int at = random.nextInt(elements.size());
                    elements.set(at, mutated(elements.get(at), random));
                }
            }
            return ValueFactory.newArray(elements);
        }
        return any(random, 0);
    }

    private static Value mutatedMap(MapValue map, SplittableRandom random) {
        List<Map.Entry<Value, Value>> entries = new ArrayList<>(map.entrySet());
        int at = random.nextInt(entries.size() + 1);
        List<Value> flat = new ArrayList<>();
        for (int i = 0; i < entries.size(); i++) {
            if (i == at && random.nextInt(4) == 0) {
                continue;
            }
            flat.add(entries.get(i).getKey());
            Value old = entries.get(i).getValue();
            flat.add(i == at ? mutated(old, random) : old);
        }
        if (at == entries.size()) {
            flat.add(ValueFactory.newString("key of tomorrow"));
            flat.add(any(random, 0));
        }
        return ValueFactory.newMap(flat.toArray(Value[]::new));
    }

    private static ImmutableValue any(SplittableRandom random, int depth) {
        long[] numbers = {
            0,
            1,
            -1,
            2,
            1 << 20,
            Integer.MAX_VALUE,
            Integer.MIN_VALUE,
            Long.MAX_VALUE,
            Long.MIN_VALUE
        };
        return switch (random.nextInt(depth > 40 ? 7 : 10)) {
            case 0 -> ValueFactory.newNil();
            case 1 -> ValueFactory.newBoolean(random.nextBoolean());
            case 2, 3 -> ValueFactory.newInteger(numbers[random.nextInt(numbers.length)]);
            case 4 -> ValueFactory.newInteger(BigInteger.TWO.pow(64).subtract(BigInteger.ONE));
            case 5 -> ValueFactory.newFloat(random.nextBoolean() ? Double.NaN : 1.5);
            case 6 -> ValueFactory.newBinary(new byte[random.nextInt(40)]);
            case 7 -> ValueFactory.newString("x".repeat(random.nextInt(6_000)));
            case 8 -> ValueFactory.newMap(ValueFactory.newString("a"), any(random, depth + 1));
            default -> {
                List<Value> elements = new ArrayList<>();
                elements.add(any(random, depth + 1));
                for (int i = random.nextInt(3) == 0 ? random.nextInt(2_000) : 0; i > 0; i--) {
                    elements.add(ValueFactory.emptyMap());
                }
                yield ValueFactory.newArray(elements);
            }
        };
    }
}
