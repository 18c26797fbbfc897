package dev.dormouse.model.gguf;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Checks the header of a GGUF file from front to back.
 *
 * <p>The layout is that of the GGUF specification (ggml, {@code docs/gguf.md}), versions 2 and 3:
 * magic, version, tensor count, metadata count, metadata, tensor infos, padding, tensor data.
 * Nothing is allocated from a declared number: memory grows only with entries really read.
 */
final class GgufParser {
    private static final int MAGIC = 0x46554747;
    private static final int OLDEST_VERSION = 2;
    private static final int NEWEST_VERSION = 3;
    private static final String ALIGNMENT_KEY = "general.alignment";
    private static final int DEFAULT_ALIGNMENT = 32;
    private static final int MAX_ENTRIES = 1 << 16;
    private static final int MAX_KEY_BYTES = 65_535;
    private static final int MAX_TENSOR_NAME_BYTES = 64;
    private static final int MAX_DIMENSIONS = 4;
    private static final int MAX_ARRAY_DEPTH = 4;

    /** Smallest metadata entry: length of the key, one byte of it, type, one byte of value. */
    private static final int MIN_ENTRY_BYTES = 14;

    /** Smallest tensor info: length of the name, one byte of it, dimensions, one extent, type. */
    private static final int MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8;

    /** The outcome: everything but the tensor data. */
    record Header(GgufMetadata metadata, Map<String, TensorInfo> tensors) {}

    private record RawTensor(String name, TensorType type, List<Long> shape, long offset) {}

    private final MemorySegment bytes;
    private final String file;
    private final Cursor cursor;

    GgufParser(MemorySegment bytes, String file) {
        this.bytes = bytes;
        this.file = file;
        this.cursor = new Cursor(bytes, file, 0);
    }

    Header parse() {
        checkMagicAndVersion();
        long tensorCount = bounded("the tensor count", MIN_TENSOR_BYTES);
        long entryCount = bounded("the metadata count", MIN_ENTRY_BYTES);
        GgufMetadata metadata = new GgufMetadata(bytes, file, readEntries(entryCount));
        List<RawTensor> raw = readTensors(tensorCount);
        return new Header(metadata, locate(raw, alignment(metadata)));
    }

    private void checkMagicAndVersion() {
        int magic = cursor.int32("the magic number");
        if (magic != MAGIC) {
            throw new GgufException(
                    "open %s: not a GGUF file: it starts with 0x%08x".formatted(file, magic));
        }
        long version = cursor.uint32("the version");
        if (version < OLDEST_VERSION || version > NEWEST_VERSION) {
            boolean bigEndian = version != 0 && (version & 0xffff) == 0;
            throw new GgufException(
                    "open %s: GGUF version %d%s; supported are little-endian %d and %d"
                            .formatted(
                                    file,
                                    version,
                                    bigEndian ? " (a big-endian file)" : "",
                                    OLDEST_VERSION,
                                    NEWEST_VERSION));
        }
    }

    private long bounded(String what, int minimumBytes) {
        long count = cursor.count(what, minimumBytes);
        if (count > MAX_ENTRIES) {
            throw new GgufException(
                    "open %s: %s is %d, the limit is %d".formatted(file, what, count, MAX_ENTRIES));
        }
        return count;
    }

    private Map<String, GgufMetadata.Entry> readEntries(long count) {
        Map<String, GgufMetadata.Entry> entries = new LinkedHashMap<>();
        for (long i = 0; i < count; i++) {
            String key = cursor.name("the key of metadata entry " + i, MAX_KEY_BYTES);
            ValueType type = ValueType.ofId(cursor.uint32("the type of '" + key + "'"), file, key);
            if (entries.putIfAbsent(key, readEntry(key, type)) != null) {
                throw new GgufException(
                        "open %s: metadata key '%s' occurs twice".formatted(file, key));
            }
        }
        return entries;
    }

    private GgufMetadata.Entry readEntry(String key, ValueType type) {
        if (type == ValueType.ARRAY) {
            return readArray(key, 1);
        }
        long start = cursor.position();
        skipValues(key, type, 1);
        return new GgufMetadata.Entry(type, type, start, 1);
    }

    private GgufMetadata.Entry readArray(String key, int depth) {
        if (depth > MAX_ARRAY_DEPTH) {
            throw new GgufException(
                    "open %s: metadata '%s' nests arrays deeper than the limit of %d"
                            .formatted(file, key, MAX_ARRAY_DEPTH));
        }
        ValueType elements =
                ValueType.ofId(
                        cursor.uint32("the element type of metadata '" + key + "'"), file, key);
        long minimumBytes =
                switch (elements) {
                    case STRING -> Long.BYTES;
                    case ARRAY -> Integer.BYTES + Long.BYTES;
                    case UINT8,
                            INT8,
                            UINT16,
                            INT16,
                            UINT32,
                            INT32,
                            FLOAT32,
                            BOOL,
                            UINT64,
                            INT64,
                            FLOAT64 ->
                            elements.sizeBytes();
                };
        long count = cursor.count("the length of the array '" + key + "'", minimumBytes);
        long start = cursor.position();
        if (elements == ValueType.ARRAY) {
            for (long i = 0; i < count; i++) {
                readArray(key, depth + 1);
            }
        } else {
            skipValues(key, elements, count);
        }
        return new GgufMetadata.Entry(ValueType.ARRAY, elements, start, count);
    }

    private void skipValues(String key, ValueType type, long count) {
        String what = "metadata '" + key + "'";
        if (type == ValueType.STRING) {
            for (long i = 0; i < count; i++) {
                cursor.skipString(what);
            }
        } else {
            cursor.skip(count * type.sizeBytes(), what);
        }
    }

    private long alignment(GgufMetadata metadata) {
        long alignment = metadata.findInteger(ALIGNMENT_KEY).orElse(DEFAULT_ALIGNMENT);
        if (alignment < 1 || alignment > bytes.byteSize() || Long.bitCount(alignment) != 1) {
            throw new GgufException(
                    "open %s: '%s' is %d, must be a power of two below the file size of %d"
                            .formatted(file, ALIGNMENT_KEY, alignment, bytes.byteSize()));
        }
        return alignment;
    }

    private List<RawTensor> readTensors(long count) {
        List<RawTensor> tensors = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (long i = 0; i < count; i++) {
            RawTensor tensor = readTensor("tensor " + i);
            if (!names.add(tensor.name)) {
                throw new GgufException(
                        "open %s: tensor '%s' occurs twice".formatted(file, tensor.name));
            }
            tensors.add(tensor);
        }
        return tensors;
    }

    private RawTensor readTensor(String label) {
        String name = cursor.name("the name of " + label, MAX_TENSOR_NAME_BYTES);
        String what = "tensor '" + name + "'";
        long dimensions = cursor.uint32("the dimension count of " + what);
        if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
            throw new GgufException(
                    "open %s: %s has %d dimensions, must be from 1 to %d"
                            .formatted(file, what, dimensions, MAX_DIMENSIONS));
        }
        List<Long> shape = new ArrayList<>();
        for (int d = 0; d < dimensions; d++) {
            long extent = cursor.int64("the shape of " + what);
            if (extent < 1) {
                throw new GgufException(
                        "open %s: dimension %d of %s is %s, must be positive and fit 63 bits"
                                .formatted(file, d, what, Long.toUnsignedString(extent)));
            }
            shape.add(extent);
        }
        long typeId = cursor.uint32("the type of " + what);
        TensorType type =
                TensorType.ofId(typeId)
                        .orElseThrow(
                                () ->
                                        new GgufException(
                                                "open %s: %s is of type %s; supported are %s"
                                                        .formatted(
                                                                file,
                                                                what,
                                                                TensorType.describe(typeId),
                                                                Arrays.toString(
                                                                        TensorType.values()))));
        return new RawTensor(name, type, shape, cursor.int64("the offset of " + what));
    }

    /** Turns offsets from the data section into offsets from the file's start, all checked. */
    private Map<String, TensorInfo> locate(List<RawTensor> raw, long alignment) {
        long mask = alignment - 1;
        // The header is part of the file and alignment at most its size: no overflow.
        long dataStart = (cursor.position() + mask) & ~mask;
        long dataBytes = Math.max(0, bytes.byteSize() - dataStart);
        Map<String, TensorInfo> located = new LinkedHashMap<>();
        for (RawTensor tensor : raw) {
            long length = lengthBytes(tensor);
            long offset = tensor.offset;
            if (offset < 0 || offset > dataBytes || length > dataBytes - offset) {
                throw new GgufException(
                        "open %s: tensor '%s' of %d bytes at offset %s leaves the data of %d bytes"
                                .formatted(
                                        file,
                                        tensor.name,
                                        length,
                                        Long.toUnsignedString(offset),
                                        dataBytes));
            }
            if ((offset & mask) != 0) {
                throw new GgufException(
                        "open %s: tensor '%s' is at offset %d, must be a multiple of %d"
                                .formatted(file, tensor.name, offset, alignment));
            }
            located.put(
                    tensor.name,
                    new TensorInfo(
                            tensor.name, tensor.type, tensor.shape, dataStart + offset, length));
        }
        checkDisjoint(located);
        return located;
    }

    private long lengthBytes(RawTensor tensor) {
        if (tensor.shape.getFirst() % tensor.type.blockElements() != 0) {
            throw new GgufException(
                    "open %s: rows of tensor '%s' have %d elements, no multiple of %s's block of %d"
                            .formatted(
                                    file,
                                    tensor.name,
                                    tensor.shape.getFirst(),
                                    tensor.type,
                                    tensor.type.blockElements()));
        }
        try {
            long elements = 1;
            for (long extent : tensor.shape) {
                elements = Math.multiplyExact(elements, extent);
            }
            return tensor.type.bytesFor(elements);
        } catch (ArithmeticException e) {
            throw new GgufException(
                    "open %s: the shape %s of tensor '%s' exceeds 63 bits"
                            .formatted(file, tensor.shape, tensor.name),
                    e);
        }
    }

    private void checkDisjoint(Map<String, TensorInfo> tensors) {
        List<TensorInfo> ordered = new ArrayList<>(tensors.values());
        ordered.sort(Comparator.comparingLong(TensorInfo::fileOffset));
        for (int i = 1; i < ordered.size(); i++) {
            TensorInfo before = ordered.get(i - 1);
            TensorInfo after = ordered.get(i);
            if (before.fileOffset() + before.lengthBytes() > after.fileOffset()) {
                throw new GgufException(
                        "open %s: tensors '%s' and '%s' overlap at byte %d"
                                .formatted(file, before.name(), after.name(), after.fileOffset()));
            }
        }
    }
}
