package dev.dormouse.engine.core;

import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationListener;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.engine.output.OutputProcessor;
import dev.dormouse.engine.output.TextDecoder;
import dev.dormouse.engine.sampling.Sampler;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.random.RandomGenerator;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Makes sequences of requests, and finds those that can never be served. */
final class Intake {
    /**
     * Enough for any id of the server's, and bounded, since the id travels in messages to peers.
     */
    private static final int MAX_ID_LENGTH = 160;

    /**
     * What an id must not have in messages to peers: a comma, which separates ids, and a beginning
     * that looks like a kind of message. All else stays as it is, since a peer of vLLM's keeps it.
     */
    private static final Pattern UNSAFE = Pattern.compile("[^!-~]|,|(?<=^[A-Z_]{1,32}):");

    private final EngineConfig config;
    private final int vocabularySize;
    private final Set<Integer> endTokens;
    private final Function<Boolean, TextDecoder> decoders;
    private final RandomGenerator seeds;
    private long arrivals;

    /**
     * Makes sequences for a model.
     *
     * @param decoders a new one for each sequence, with or without the text of control tokens
     * @param seeds draws a seed for each request that names none, and the end of each id
     */
    Intake(
            EngineConfig config,
            int vocabularySize,
            Set<Integer> endTokens,
            Function<Boolean, TextDecoder> decoders,
            RandomGenerator seeds) {
        this.config = config;
        this.vocabularySize = vocabularySize;
        this.endTokens = endTokens;
        this.decoders = decoders;
        this.seeds = seeds;
    }

    /** Why the request can never be served, or null if it can. */
    @Nullable String fault(GenerationRequest request) {
        int prompt = request.promptTokens().size();
        if (prompt == 0) {
            return "the prompt is empty, but must have at least one token";
        }
        if (prompt >= config.maxModelLength()) {
            return "the prompt has %d tokens, but the model's length is %d tokens and one must be left for the output; shorten the prompt"
                    .formatted(prompt, config.maxModelLength());
        }
        @Nullable String fault = outside("the prompt's token", request.promptTokens());
        if (fault == null) {
            fault = outside("stop_token_ids'", request.sampling().stopTokenIds());
        }
        return fault != null ? fault : fault(request.sampling().tokenRules());
    }

    private @Nullable String fault(TokenRules rules) {
        @Nullable String fault = outside("logit_bias'", rules.bias().keySet());
        if (fault == null && rules.allowed() != null) {
            fault = outside("allowed_token_ids'", rules.allowed());
        }
        for (List<Integer> run : rules.banned()) {
            fault = fault == null ? outside("bad_words'", run) : fault;
        }
        return fault;
    }

    /** A sequence for a request without {@link #fault}. */
    Sequence accept(GenerationRequest request, GenerationListener listener) {
        return new Sequence(
                request,
                identify(request),
                arrivals++,
                listener,
                new Sampler(
                        request.sampling(), request.promptTokens(), endTokens, seeds.nextLong()),
                new OutputProcessor(
                        request.sampling(),
                        endTokens,
                        outputRoom(request),
                        decoders.apply(request.sampling().skipSpecialTokens())),
                FirstToken.of(request, vocabularySize));
    }

    /**
     * The request as the connector knows it. Its id begins with the one that peers and routers
     * share, and ends like vLLM's with eight random digits, so that nobody who was not told can
     * speak of it.
     */
    ConnectorRequest identify(GenerationRequest request) {
        String id = request.sharedId();
        String safe =
                UNSAFE.matcher(id.substring(0, Math.min(id.length(), MAX_ID_LENGTH)))
                        .replaceAll("_");
        return new ConnectorRequest(
                "%s-%08x".formatted(safe, seeds.nextInt()),
                request.promptTokens().size(),
                request.kvTransferParams());
    }

    /** A request that was refused before its id and its prompt were known here. */
    ConnectorRequest identify(KvTransferParams params) {
        return new ConnectorRequest("declined-%08x".formatted(seeds.nextInt()), 0, params);
    }

    private int outputRoom(GenerationRequest request) {
        return Math.min(
                request.sampling().maxTokens(),
                config.maxModelLength() - request.promptTokens().size());
    }

    private @Nullable String outside(String what, Collection<Integer> tokens) {
        for (int token : tokens) {
            if (token < 0 || token >= vocabularySize) {
                return "%s %d is outside the vocabulary of %d tokens"
                        .formatted(what, token, vocabularySize);
            }
        }
        return null;
    }
}
