package dev.dormouse.connector;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.benchmarks.Timed;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import java.util.stream.IntStream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;

/** What engines say to each other: handshakes in msgpack, transfer parameters in JSON. */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class WireBenchmark extends Timed {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int AGENT_BYTES = 2_000; // as NIXL has for some registrations
    private static final long REGION_BYTES = 1L << 28;
    private static final int REGION_BLOCKS = 8_192;
    private static final String HASH = "5f".repeat(32);
    private static final String ENGINE = "b0e6e2b8-6a3d-4f0e-9c54-6a1d0f0e7c11";

    /** Regions, one for each layer. */
    @Param({"30", "80"})
    public int regions;

    /** Blocks of a prompt. */
    @Param("64")
    public int blocks;

    private AgentMetadata metadata;
    private byte[] handshake;
    private RemoteHandOver handOver;
    private String params;

    /** Makes what is written and read. */
    @Setup
    public void setUp() throws JsonProcessingException {
        long blockBytes = REGION_BYTES / REGION_BLOCKS;
        List<KvCacheRegions.Region> layers =
                IntStream.range(0, regions)
                        .mapToObj(
                                i ->
                                        new KvCacheRegions.Region(
                                                "model.layers." + i + ".self_attn.attn",
                                                (i + 1) * REGION_BYTES,
                                                REGION_BLOCKS,
                                                blockBytes,
                                                blockBytes))
                        .toList();
        MemoryRange all = new MemoryRange(REGION_BYTES, regions * REGION_BYTES, MemoryKind.DRAM, 0);
        metadata =
                AgentMetadata.ofAttention(
                        ENGINE,
                        TransportMetadata.ofAgent(new byte[AGENT_BYTES]),
                        new KvCacheRegions(layers, List.of(all), 16, "LBHNC", MemoryKind.DRAM, 0),
                        "FLASH_ATTN");
        handshake = writeHandshake();
        handOver =
                new RemoteHandOver(
                        new RemoteSource(
                                ENGINE,
                                ENGINE,
                                "cmpl-1",
                                "127.0.0.1",
                                5600,
                                1,
                                1,
                                7,
                                new RemoteLease(1e6, 30)),
                        IntStream.range(0, blocks).boxed().toList(),
                        blocks * 16,
                        blocks * 16,
                        HASH);
        params = writeParams();
    }

    /** The answer to a handshake, with the metadata in it. */
    @Benchmark
    public byte[] writeHandshake() {
        return new HandshakePayload(HASH, AgentMetadataCodec.encode(metadata), 7, ENGINE).encode();
    }

    /** The same, read and checked. */
    @Benchmark
    public AgentMetadata readHandshake() {
        return AgentMetadataCodec.decode(HandshakePayload.decode(handshake).agentMetadata());
    }

    /** A prompt's transfer parameters, to their text. */
    @Benchmark
    public String writeParams() throws JsonProcessingException {
        return JSON.writeValueAsString(handOver.write(CompatibilityFactors.PULL).toJson());
    }

    /** The same, from their text. */
    @Benchmark
    public int readParams() throws JsonProcessingException {
        return RemoteHandOver.read(KvTransferParams.of(JSON.readTree(params))).tokens();
    }
}
