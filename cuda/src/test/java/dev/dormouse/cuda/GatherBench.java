package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Compares ways to build {@link GatherKernel} with one plain copy of as many bytes, over blocks in
 * random order from four segments, within a GPU ({@code same}) or from another ({@code peer}). The
 * target is poisoned before, and every word compared after.
 *
 * <p>Arguments: {@code [same|peer] [largest total in MiB] [variant ...]}. GB/s are bytes moved, in
 * 10^9, best and median of five batches of at least 2 GiB; {@code once} is the wall time of one
 * list, uploaded, launched and awaited, at its best.
 */
final class GatherBench {
    private static final long[] TOTALS = {64L << 20, 1L << 30, 4L << 30};
    private static final long[] BLOCKS = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    private static final int SEGMENTS = 4;
    private static final int BATCHES = 5;
    private static final long BATCH_BYTES = 2L << 30;
    private static final LaunchShape WIDE = LaunchShape.of(2048, 256);

    private final CudaContext source;
    private final CudaContext target;
    private final CudaStream stream;
    private final List<DeviceSpan> segments = new ArrayList<>();
    private final DeviceSpan destination;
    private final PinnedMemory order;
    private final DeviceBuffer deviceOrder;
    private final PinnedMemory wrong;
    private final DeviceBuffer deviceWrong;
    private final CudaFunction fill;
    private final CudaFunction compare;
    private final GatherList list;
    private final CudaEvent start;
    private final CudaEvent end;

    private GatherBench(CudaContext source, CudaContext target, long bytes) {
        this.source = source;
        this.target = target;
        stream = CudaStream.create(target);
        long unit = PhysicalMemory.granularityBytes(source);
        for (int i = 0; i < SEGMENTS; i++) {
            segments.add(map(source, Math.ceilDiv(bytes / SEGMENTS, unit) * unit, target));
        }
        destination = map(target, Math.ceilDiv(bytes, unit) * unit, target);
        int blocks = Math.toIntExact(bytes / BLOCKS[0]);
        order = PinnedMemory.allocate(target, 4L * blocks);
        deviceOrder = DeviceBuffer.allocate(target, 4L * blocks);
        wrong = PinnedMemory.allocate(target, Long.BYTES);
        deviceWrong = DeviceBuffer.allocate(target, Long.BYTES);
        fill = pattern(source).function("fill");
        compare = pattern(target).function("compare");
        list = GatherList.allocate(target, blocks);
        start = CudaEvent.create(target);
        end = CudaEvent.create(target);
    }

    private static DeviceSpan map(CudaContext owner, long bytes, CudaContext user) {
        AddressRange range = AddressRange.reserve(owner, bytes);
        try (PhysicalMemory memory = PhysicalMemory.allocate(owner, bytes)) {
            range.map(0, memory, MemoryAccess.READ_WRITE);
        }
        if (user != owner) {
            range.allow(0, bytes, user.device(), MemoryAccess.READ_WRITE);
        }
        return range.span(0, bytes);
    }

    private static CudaModule pattern(CudaContext context) {
        KernelTarget target = KernelTarget.machineCode(context.device().computeCapability());
        byte[] image =
                Nvrtc.load()
                        .compile(
                                KernelSource.resource(GatherBench.class, "pattern.cu"),
                                target,
                                List.of());
        return CudaModule.load(context, "pattern.cu", image);
    }

    private static Map<String, GatherVariant> variants() {
        Map<String, GatherVariant> variants = new LinkedHashMap<>();
        variants.put("u8-t256-cs", GatherVariant.warps(8, 256, 0, true));
        variants.put("u8-t256", GatherVariant.warps(8, 256, 0, false));
        variants.put("u4-t512-cs", GatherVariant.warps(4, 512, 0, true));
        variants.put("u8-t256-p4-cs", GatherVariant.warps(8, 256, 4, true));
        variants.put("u8-t256-p2-cs", GatherVariant.warps(8, 256, 2, true));
        variants.put("u4-t512-p3", GatherVariant.warps(4, 512, 3, false));
        variants.put("u16-t128-cs", GatherVariant.warps(16, 128, 0, true));
        variants.put("bulk-4k-8-6", GatherVariant.bulk(4 << 10, 8, 6));
        variants.put("bulk-8k-6-4", GatherVariant.bulk(8 << 10, 6, 4));
        variants.put("bulk-16k-4-2", GatherVariant.bulk(16 << 10, 4, 2));
        variants.put("bulk-32k-6-4", GatherVariant.bulk(32 << 10, 6, 4));
        return variants;
    }

    public static void main(String[] arguments) throws Exception {
        boolean peer = arguments.length > 0 && arguments[0].equals("peer");
        long largest = (arguments.length > 1 ? Long.parseLong(arguments[1]) : 4096) << 20;
        List<String> wanted =
                Arrays.asList(arguments).subList(Math.min(2, arguments.length), arguments.length);
        CudaDriver driver = CudaDriver.load();
        CudaContext target = CudaContext.retain(driver.device(0));
        CudaContext source = peer ? CudaContext.retain(driver.device(1)) : target;
        System.out.printf(
                "# %s, driver %d, NVRTC %s, %s%n",
                target.device(), driver.version(), Nvrtc.load().version(), peer ? "peer" : "same");
        if (peer) {
            System.out.println("# can access: " + target.device().canAccess(source.device()));
        }
        KernelCache cache = new KernelCache(Files.createTempDirectory("kernels"), Nvrtc.load());
        GatherBench bench = new GatherBench(source, target, largest);
        bench.fillSource();
        Map<String, GatherKernel> kernels = new LinkedHashMap<>();
        for (Map.Entry<String, GatherVariant> variant : variants().entrySet()) {
            if (wanted.isEmpty() || wanted.contains(variant.getKey())) {
                GatherKernel kernel = GatherKernel.load(target, cache, variant.getValue());
                kernels.put(variant.getKey(), kernel);
                System.out.println("# " + variant + " registers=" + kernel.registers());
            }
        }
        for (long total : TOTALS) {
            if (total <= largest) {
                for (long block : BLOCKS) {
                    bench.rows(kernels, total, block);
                }
            }
        }
    }

    private void fillSource() {
        try (CudaStream sourceStream = CudaStream.create(source)) {
            long first = 0;
            for (DeviceSpan segment : segments) {
                long words = segment.lengthBytes() / Integer.BYTES;
                KernelArguments values =
                        new KernelArguments().address(segment).int64(words).int64(first);
                sourceStream.launch(fill, WIDE, values);
                first += words;
            }
            sourceStream.synchronize();
        }
    }

    private void rows(Map<String, GatherKernel> kernels, long total, long block) {
        int count = Math.toIntExact(total / block);
        int[] numbers =
                new int
                        [Math.toIntExact(
                                segments.size() * segments.getFirst().lengthBytes() / block)];
        Arrays.setAll(numbers, i -> i);
        Random random = new Random(total + block);
        for (int i = numbers.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            int swapped = numbers[i];
            numbers[i] = numbers[j];
            numbers[j] = swapped;
        }
        for (int i = 0; i < count; i++) {
            order.segment().setAtIndex(JAVA_INT, i, numbers[i]);
        }
        stream.copyToDevice(order, 0, deviceOrder.span().slice(0, 4L * count));
        double copy = copyRate(total);
        kernels.forEach((name, kernel) -> row(name, kernel, total, block, count, numbers, copy));
    }

    private void row(
            String name,
            GatherKernel kernel,
            long total,
            long block,
            int count,
            int[] numbers,
            double copy) {
        stream.fill(destination.slice(0, total), (byte) 0x5a);
        double once = Double.MAX_VALUE;
        for (int i = 0; i < BATCHES; i++) {
            stream.synchronize();
            fillList(block, count, numbers);
            long began = System.nanoTime();
            kernel.copy(stream, list);
            stream.synchronize();
            once = Math.min(once, (System.nanoTime() - began) / 1e6);
        }
        long mistakes = compare(total, block);
        double[] rates = rates(total, () -> kernel.copy(stream, list));
        System.out.printf(
                "%-14s total=%5dMiB block=%5dKiB best=%7.1f median=%7.1f copy=%7.1f ratio=%.3f"
                        + " once=%.3fms onceGBs=%.1f %s%n",
                name,
                total >> 20,
                block >> 10,
                rates[BATCHES - 1],
                rates[BATCHES / 2],
                copy,
                rates[BATCHES / 2] / copy,
                once,
                total / once / 1e6,
                mistakes == 0 ? "ok" : "WRONG words=" + mistakes);
    }

    private void fillList(long block, int count, int[] numbers) {
        list.clear(block);
        long perSegment = segments.getFirst().lengthBytes() / block;
        for (int i = 0; i < count; i++) {
            DeviceSpan segment = segments.get(Math.toIntExact(numbers[i] / perSegment));
            list.add(segment, numbers[i] % perSegment * block, destination, i * block);
        }
    }

    private long compare(long total, long block) {
        wrong.segment().set(JAVA_LONG, 0, 0);
        stream.copyToDevice(wrong, 0, deviceWrong.span());
        KernelArguments values =
                new KernelArguments()
                        .address(destination)
                        .int64(total / Integer.BYTES)
                        .address(deviceOrder.span())
                        .int64(block / Integer.BYTES)
                        .address(deviceWrong.span());
        stream.launch(compare, WIDE, values);
        stream.copyToHost(deviceWrong.span(), wrong, 0);
        stream.synchronize();
        return wrong.segment().get(JAVA_LONG, 0);
    }

    /** As few plain copies as the segments allow: one up to the length of a segment. */
    private double copyRate(long total) {
        long part = Math.min(total, segments.getFirst().lengthBytes());
        Runnable copies =
                () -> {
                    for (int i = 0; i < total / part; i++) {
                        DeviceSpan from = segments.get(i).slice(0, part);
                        DeviceSpan to = destination.slice(i * part, part);
                        if (source == target) {
                            stream.copy(from, to);
                        } else {
                            stream.copyBetween(source, from, target, to);
                        }
                    }
                };
        return rates(total, copies)[BATCHES / 2];
    }

    /** GB/s by the GPU's clock, ascending. */
    private double[] rates(long total, Runnable work) {
        long repeats = Math.max(2, BATCH_BYTES / total);
        double[] rates = new double[BATCHES];
        work.run();
        for (int batch = 0; batch < BATCHES; batch++) {
            stream.record(start);
            for (long i = 0; i < repeats; i++) {
                work.run();
            }
            stream.record(end);
            stream.synchronize();
            rates[batch] = repeats * total / end.millisSince(start) / 1e6;
        }
        Arrays.sort(rates);
        return rates;
    }
}
