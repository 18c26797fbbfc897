package dev.dormouse.model.folder;

import dev.dormouse.model.ModelException;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.json.JsonFields;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Checks the header of a safetensors file.
 *
 * <p>The layout is that of the safetensors README: the header's length in 8 bytes, the header, a
 * JSON object with type, shape and place of each tensor, and the data, which the tensors fill
 * without a gap. A file whose tensors overlap, leave a gap, or reach over the end is refused.
 */
final class SafetensorsHeader {
    /** 65,536 tensors with long names fit; on the heap a header takes some times its size. */
    private static final long MAX_HEADER_BYTES = 16 << 20;

    private static final int MAX_TENSORS = 1 << 16;
    private static final int MAX_DIMENSIONS = 4;
    private static final String METADATA = "__metadata__";
    private static final ValueLayout.OfLong LONG =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final String file;
    private final long dataStart;
    private final long dataBytes;

    private SafetensorsHeader(String file, long dataStart, long dataBytes) {
        this.file = file;
        this.dataStart = dataStart;
        this.dataBytes = dataBytes;
    }

    static Map<String, TensorInfo> read(MemorySegment bytes, String file) {
        long rest = bytes.byteSize() - Long.BYTES;
        long length = rest < 0 ? 0 : bytes.get(LONG, 0);
        if (length < 2 || length > Math.min(rest, MAX_HEADER_BYTES)) {
            throw new ModelException(
                    "open %s: not a safetensors file, or too large: its header has %s of %d bytes, the limit is %d"
                            .formatted(
                                    file,
                                    Long.toUnsignedString(length),
                                    Math.max(0, rest),
                                    MAX_HEADER_BYTES));
        }
        byte[] json = bytes.asSlice(Long.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
        JsonFields header = JsonFields.parse(json, file);
        return new SafetensorsHeader(file, Long.BYTES + length, rest - length).tensors(header);
    }

    private Map<String, TensorInfo> tensors(JsonFields header) {
        List<TensorInfo> tensors = new ArrayList<>();
        for (String name : header.names()) {
            if (!name.equals(METADATA)) {
                tensors.add(tensor(name, header.object(name)));
            }
        }
        if (tensors.size() > MAX_TENSORS) {
            throw refused("%d tensors, the limit is %d".formatted(tensors.size(), MAX_TENSORS));
        }
        tensors.sort(Comparator.comparingLong(TensorInfo::fileOffset));
        long end = dataStart;
        Map<String, TensorInfo> byName = new LinkedHashMap<>();
        for (TensorInfo tensor : tensors) {
            if (tensor.fileOffset() != end) {
                throw refused(
                        "tensor '%s' starts at byte %d of the data, the one before it ends at %d"
                                .formatted(
                                        tensor.name(),
                                        tensor.fileOffset() - dataStart,
                                        end - dataStart));
            }
            end += tensor.lengthBytes();
            byName.put(tensor.name(), tensor);
        }
        if (end - dataStart != dataBytes) {
            throw refused(
                    "tensors fill %d of %d bytes of data".formatted(end - dataStart, dataBytes));
        }
        return Collections.unmodifiableMap(byName);
    }

    private TensorInfo tensor(String name, JsonFields fields) {
        TensorType type = type(name, fields.string("dtype"));
        List<Long> shape = new ArrayList<>(fields.naturals("shape"));
        if (shape.isEmpty() || shape.size() > MAX_DIMENSIONS || shape.contains(0L)) {
            throw refused(
                    "tensor '%s' has shape %s, must be of 1 to %d positive extents"
                            .formatted(name, shape, MAX_DIMENSIONS));
        }
        Collections.reverse(shape);
        long length = lengthBytes(name, type, shape);
        List<Long> place = fields.naturals("data_offsets");
        if (place.size() != 2
                || place.get(0) > place.get(1)
                || place.get(1) > dataBytes
                || place.get(1) - place.get(0) != length) {
            throw refused(
                    "tensor '%s' of %d bytes has offsets %s in %d bytes of data"
                            .formatted(name, length, place, dataBytes));
        }
        return new TensorInfo(name, type, shape, dataStart + place.get(0), length);
    }

    private TensorType type(String name, String type) {
        return switch (type) {
            case "F32" -> TensorType.F32;
            case "F16" -> TensorType.F16;
            case "BF16" -> TensorType.BF16;
            default ->
                    throw refused(
                            "tensor '%s' is of type %s; supported are F32, F16, BF16"
                                    .formatted(name, type));
        };
    }

    private long lengthBytes(String name, TensorType type, List<Long> shape) {
        try {
            long elements = 1;
            for (long extent : shape) {
                elements = Math.multiplyExact(elements, extent);
            }
            return type.bytesFor(elements);
        } catch (ArithmeticException e) {
            throw new ModelException(
                    "open %s: the shape %s of tensor '%s' exceeds 63 bits"
                            .formatted(file, shape.reversed(), name),
                    e);
        }
    }

    private ModelException refused(String found) {
        return new ModelException("open " + file + ": " + found);
    }
}
