package dev.dormouse.cli.serve;

import dev.dormouse.model.KvType;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Options of {@code dormouse serve}; where vLLM has the option, its name. */
final class ServeOptions {
    /** Which leg of a request an engine serves for others. */
    enum Role {
        /** Computes prompts, and holds their KV for a decode engine. */
        prefill,
        /** Reads prompts' KV from a prefill engine, and generates. */
        decode,
        /** Either, as each request asks. */
        both
    }

    /** Element types of the KV cache. */
    enum KvCacheDtype {
        /** The standard: half precision. */
        auto,
        /** IEEE half precision. */
        float16,
        /** The upper half of a float. */
        bfloat16;

        KvType type() {
            return this == bfloat16 ? KvType.BF16 : KvType.F16;
        }
    }

    /** Which way KV takes between engines. */
    enum KvTransport {
        /** Mapped memory where that can be, else NIXL. */
        auto,
        /** NIXL. */
        nixl,
        /** Mapped memory alone. */
        local
    }

    /** What becomes of a request whose KV cannot be read. */
    enum LoadFailurePolicy {
        /** It fails. */
        fail,
        /** Its prompt is computed here. */
        recompute
    }

    /** Who is served first. */
    enum SchedulingPolicy {
        /** Who came first. */
        fcfs,
        /** Whose request has the smallest priority, and of those who came first. */
        priority
    }

    @Option(
            names = "--model",
            paramLabel = "PATH",
            defaultValue = "${env:DORMOUSE_MODEL}",
            description =
                    "GGUF file, or folder of Hugging Face's with config.json, safetensors and tokenizer.json; Llama, Qwen 2 and Qwen 3 models (default: the model that the set-up fetched).")
    @Nullable Path model;

    @Option(
            names = "--served-model-name",
            paramLabel = "NAME",
            description = "Name in API requests (default: the file's or the folder's).")
    @Nullable String servedModelName;

    @Option(
            names = "--role",
            description =
                    "Serve one leg of P/D: ${COMPLETION-CANDIDATES}. Without it, and without --kv-transfer-config, the engine works alone.")
    @Nullable Role role;

    @Option(
            names = {"--tensor-parallel-size", "-tp"},
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Ranks that share the model, each with its part of the weights and the KV heads in memory of its own; all in this process. The default model can have 1 or 3 (default: ${DEFAULT-VALUE}).")
    int tensorParallelSize;

    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "HTTP address (default: ${DEFAULT-VALUE}).")
    String host = "";

    @Option(
            names = "--port",
            defaultValue = "8000",
            description = "HTTP port, 0 for a free one (default: ${DEFAULT-VALUE}).")
    int port;

    @Option(
            names = "--admin-host",
            defaultValue = "127.0.0.1",
            description =
                    "Address of the calls that put the engine to sleep, wake, pause and resume it (default: ${DEFAULT-VALUE}).")
    String adminHost = "";

    @Option(
            names = "--admin-port",
            description = "Their port, 0 for a free one (default: the HTTP port + 10000).")
    @Nullable Integer adminPort;

    @Option(
            names = "--admin-token",
            paramLabel = "TOKEN",
            defaultValue = "${env:DORMOUSE_ADMIN_TOKEN}",
            description =
                    "What those calls must carry as `Authorization: Bearer TOKEN`; needed unless their address is a loopback one (default: $DORMOUSE_ADMIN_TOKEN).")
    @Nullable String adminToken;

    @Option(
            names = "--shutdown-timeout",
            paramLabel = "SECONDS",
            defaultValue = "15",
            description =
                    "How long requests and readers may take to their end when the engine is told to end (default: ${DEFAULT-VALUE}).")
    int shutdownTimeoutSeconds;

    @Option(
            names = "--api-key",
            paramLabel = "KEY",
            description =
                    "Key that requests to /v1/ must carry as `Authorization: Bearer KEY`; may be repeated (default: DORMOUSE_API_KEY or VLLM_API_KEY of the environment, else none).")
    List<String> apiKeys = List.of();

    @Option(
            names = "--side-channel-host",
            defaultValue = "${env:VLLM_NIXL_SIDE_CHANNEL_HOST:-127.0.0.1}",
            description =
                    "Address where other engines ask for this one's KV layout (default: ${DEFAULT-VALUE}).")
    String sideChannelHost = "";

    @Option(
            names = "--side-channel-advertised-host",
            paramLabel = "HOST",
            description = "Address that other engines are told (default: the side channel's host).")
    @Nullable String advertisedHost;

    @Option(
            names = "--side-channel-port",
            defaultValue = "${env:VLLM_NIXL_SIDE_CHANNEL_PORT:-5600}",
            description = "Its port, 0 for a free one (default: ${DEFAULT-VALUE}).")
    int sideChannelPort;

    @Option(
            names = "--data-parallel-index",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Place among data parallel engines; it is added to the side channel's port (default: ${DEFAULT-VALUE}).")
    int dataParallelIndex;

    @Option(
            names = "--kv-transfer-config",
            paramLabel = "JSON",
            description =
                    "vLLM's option of this name: connector, role and settings as one JSON object; options of their own win.")
    @Nullable String kvTransferConfig;

    @Option(
            names = "--kv-compat",
            paramLabel = "FACTOR=VALUE",
            description =
                    "What this engine says of itself where a vLLM peer says something else: vllm_version (default: 0.33.0), nixl_connector_version (15), model (the file's name of it), dtype (the cache's), attn_backend_name (FLASH_ATTN), cache_dtype (auto), is_hma_enabled (true). Repeatable.")
    Map<String, String> kvCompat = Map.of();

    @Option(
            names = "--kv-allowed-peers",
            paramLabel = "RULE",
            split = ",",
            description =
                    "Engines that may be read from: addresses, networks such as 10.0.0.0/8, names such as *.prefill.local (default: any).")
    List<String> kvAllowedPeers = List.of();

    @Option(
            names = "--kv-allowed-peer-ports",
            paramLabel = "FROM-TO",
            description = "Their side channel ports (default: any).")
    @Nullable String kvAllowedPeerPorts;

    @Option(
            names = "--kv-transport",
            paramLabel = "TRANSPORT",
            description =
                    "How KV comes from other engines: auto (mapped memory from those of this host, NIXL from others), nixl, or local (mapped memory only, engines of other hosts are refused) (default: auto).")
    @Nullable KvTransport kvTransport;

    @Option(
            names = "--kv-max-peer-blocks",
            paramLabel = "N",
            description =
                    "Most KV blocks, over all layers, that a peer's rank may name (default: 4194304).")
    @Nullable Integer kvMaxPeerBlocks;

    @Option(
            names = "--kv-cache-memory",
            paramLabel = "SIZE",
            defaultValue = "512MiB",
            converter = MemorySize.Converter.class,
            description = "Memory for the KV cache, over all ranks (default: ${DEFAULT-VALUE}).")
    MemorySize kvCacheMemory = new MemorySize(0);

    @Option(
            names = "--kv-cache-dtype",
            paramLabel = "TYPE",
            defaultValue = "auto",
            description =
                    "Element type of the KV cache: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    KvCacheDtype kvCacheDtype = KvCacheDtype.auto;

    @Option(
            names = "--block-size",
            defaultValue = "16",
            description = "Tokens per KV block (default: ${DEFAULT-VALUE}).")
    int blockSize;

    @Option(
            names = "--max-model-len",
            description = "Longest prompt plus output, in tokens (default: the model's own).")
    @Nullable Integer maxModelLen;

    @Option(
            names = "--max-num-seqs",
            defaultValue = "64",
            description = "Sequences computed at once (default: ${DEFAULT-VALUE}).")
    int maxNumSeqs;

    @Option(
            names = "--max-num-batched-tokens",
            defaultValue = "512",
            description = "Tokens computed in one step (default: ${DEFAULT-VALUE}).")
    int maxNumBatchedTokens;

    @Option(
            names = "--max-num-waiting",
            defaultValue = "1024",
            description =
                    "Requests that may wait; further ones are answered 503 (default: ${DEFAULT-VALUE}).")
    int maxNumWaiting;

    @Option(
            names = "--scheduling-policy",
            paramLabel = "POLICY",
            defaultValue = "fcfs",
            description =
                    "Who is served first: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}). With fcfs who came first; with priority whose request has the smallest 'priority'.")
    SchedulingPolicy schedulingPolicy = SchedulingPolicy.fcfs;

    @Option(
            names = "--enable-prefix-caching",
            negatable = true,
            defaultValue = "true",
            fallbackValue = "true",
            description = "Keep and share prompts' KV (default: ${DEFAULT-VALUE}).")
    boolean prefixCaching;

    @Option(
            names = "--enable-sleep-mode",
            description = "Allow /sleep, /wake_up and /release_kv_cache_memory.")
    boolean sleepMode;

    @Option(
            names = "--hold-requests-while-asleep",
            description = "Requests that arrive asleep wait for the wake instead of a 503.")
    boolean holdRequestsWhileAsleep;

    @Option(
            names = "--kv-load-failure-policy",
            paramLabel = "POLICY",
            description =
                    "A request whose KV cannot be read: ${COMPLETION-CANDIDATES} (default: fail).")
    @Nullable LoadFailurePolicy loadFailurePolicy;

    @Option(
            names = "--kv-lease-duration",
            paramLabel = "SECONDS",
            description =
                    "How long a prompt's KV is held for a reader without a sign of life (default: 30).")
    @Nullable Integer leaseSeconds;

    @Option(
            names = "--engine-id",
            paramLabel = "ID",
            description = "Name among engines (default: random at each start).")
    @Nullable String engineId;

    @Option(names = "--threads", description = "Compute threads (default: one per processor).")
    @Nullable Integer threads;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "YAML file of these options; the command line wins.")
    @Nullable Path config;

    @Option(
            names = "--poison-woken-memory",
            hidden = true,
            description = "Fill woken memory with a pattern; for debugging.")
    boolean poisonWokenMemory;

    @Option(
            names = "--exit-with-parent",
            hidden = true,
            description = "End when standard input closes.")
    boolean exitWithParent;

    /** The API keys; the environment's is taken if the options name none. */
    List<String> apiKeys(Map<String, String> environment) {
        if (!apiKeys.isEmpty()) {
            return apiKeys;
        }
        String key =
                environment.getOrDefault(
                        "DORMOUSE_API_KEY", environment.getOrDefault("VLLM_API_KEY", ""));
        return key.isEmpty() ? List.of() : List.of(key);
    }
}
