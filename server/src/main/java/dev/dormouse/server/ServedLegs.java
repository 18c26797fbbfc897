package dev.dormouse.server;

import dev.dormouse.connector.KvTransferParams;
import org.jspecify.annotations.Nullable;

/** The legs of a request that an engine serves for others. */
public enum ServedLegs {
    /** Computes prompts, and holds their KV for a decode engine. */
    PREFILL,
    /** Reads prompts' KV from a prefill engine, and generates. */
    DECODE,
    /** Either, as each request asks. */
    BOTH;

    /**
     * Why a request with these parameters is at the wrong engine, or null if it is not: a router
     * that mixes its engines up would otherwise only be slow.
     */
    @Nullable String refusal(KvTransferParams params) {
        return switch (this) {
            case PREFILL ->
                    params.remotePrefill()
                            ? "do_remote_prefill is true, but this engine has the role prefill; send the request to a decode engine"
                            : null;
            case DECODE ->
                    params.remoteDecode()
                            ? "do_remote_decode is true, but this engine has the role decode; send the request to a prefill engine"
                            : null;
            case BOTH -> null;
        };
    }
}
