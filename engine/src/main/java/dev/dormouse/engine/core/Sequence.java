package dev.dormouse.engine.core;

import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationListener;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.StopReason;
import dev.dormouse.engine.kv.BlockTable;
import dev.dormouse.engine.output.OutputProcessor;
import dev.dormouse.engine.sampling.Candidates;
import dev.dormouse.engine.sampling.PromptScores;
import dev.dormouse.engine.sampling.SampledToken;
import dev.dormouse.engine.sampling.Sampler;
import dev.dormouse.model.Logits;
import dev.dormouse.model.SequenceChunk;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One request between its arrival and its end: its tokens, how many of them have their K and V in
 * its blocks, and what its client was told.
 */
final class Sequence {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    /** Where a sequence is. */
    enum Status {
        /** In the queue, without blocks. */
        WAITING,
        /** With blocks that a read from another engine is filling. */
        RECEIVING,
        /** With blocks, computed step by step. */
        RUNNING,
        /** Told its client the last event; other engines may still use its blocks. */
        ENDED
    }

    /** Who comes first: by priority, then by arrival. */
    static final Comparator<Sequence> URGENCY =
            Comparator.comparingInt((Sequence sequence) -> sequence.priority)
                    .thenComparingLong(sequence -> sequence.order);

    private final String requestId;
    private final ConnectorRequest connectorRequest;
    private final int priority;
    private final long order;
    private final GenerationListener listener;
    private final Sampler sampler;
    private final OutputProcessor output;
    private final @Nullable PromptScores scores;
    private final FirstToken firstToken;
    private BlockTable blocks = new BlockTable();
    private final int promptTokens;
    private int[] tokens;
    private int length;
    private int computed;
    private int provided;
    private int cachedPromptTokens;
    private int externalTokens;
    private boolean admitted;
    private boolean mayReadRemote;
    private boolean promptTold;
    private Status status = Status.WAITING;

    Sequence(
            GenerationRequest request,
            ConnectorRequest identity,
            long order,
            GenerationListener listener,
            Sampler sampler,
            OutputProcessor output,
            FirstToken firstToken) {
        this.requestId = request.id();
        this.priority = request.priority();
        this.order = order;
        this.listener = listener;
        this.sampler = sampler;
        this.output = output;
        this.firstToken = firstToken;
        Integer promptLogprobs = request.sampling().promptLogprobs();
        this.scores =
                promptLogprobs == null
                        ? null
                        : new PromptScores(request.promptTokens(), promptLogprobs);
        // Whoever reads a prompt's KV has no logits of it.
        this.mayReadRemote = scores == null;
        this.tokens = request.promptTokens().stream().mapToInt(Integer::intValue).toArray();
        this.promptTokens = tokens.length;
        this.length = promptTokens;
        this.connectorRequest =
                new ConnectorRequest(
                        identity.id(),
                        promptTokens,
                        count -> TokenHash.of(tokens, count),
                        identity.params());
    }

    /** The client's id, unique among live requests. */
    String requestId() {
        return requestId;
    }

    /** The engine's own id, never used again. */
    String id() {
        return connectorRequest.id();
    }

    ConnectorRequest connectorRequest() {
        return connectorRequest;
    }

    /** Smaller is older. */
    long order() {
        return order;
    }

    Status status() {
        return status;
    }

    void become(Status next) {
        status = next;
    }

    BlockTable blocks() {
        return blocks;
    }

    /** Prompt and output; only the first {@link #length()} are valid. */
    int[] tokens() {
        return tokens;
    }

    int length() {
        return length;
    }

    int promptTokens() {
        return promptTokens;
    }

    /** Leading tokens whose K and V the blocks hold. */
    int computed() {
        return computed;
    }

    /** Tokens that must be computed before the next one can be chosen. */
    int uncomputed() {
        return length - computed;
    }

    /** Tokens that the running or last read brings. */
    int externalTokens() {
        return externalTokens;
    }

    /** Whether its prompt may still be read from another engine. */
    boolean mayReadRemote() {
        return mayReadRemote;
    }

    void forbidRemoteRead() {
        mayReadRemote = false;
    }

    /** True while its prompt's own logits are needed. */
    boolean scoresPrompt() {
        return scores != null && !scores.isComplete();
    }

    /**
     * Leading tokens whose K and V may come from this engine's cache. The last token never does:
     * its logits are needed, and a block that is written is never one that others read.
     */
    int reusableTokens() {
        return scores != null && scoresPrompt()
                ? Math.min(scores.positions(), length - 1)
                : length - 1;
    }

    /** The parameters of its hand-over with what their reader shall know besides. */
    KvTransferParams describe(KvTransferParams params) {
        KvTransferParams described = params.withPrefillCachedTokens(cachedPromptTokens);
        return length > promptTokens
                ? firstToken.addTo(described, tokens[promptTokens])
                : described;
    }

    /**
     * Whether it only computes a prompt, for another engine to decode: what cannot be read of that
     * prompt is computed here in any case.
     */
    boolean isPrefill() {
        KvTransferParams params = connectorRequest.params();
        return params != null && params.remoteDecode() && !params.remotePrefill();
    }

    /** Whether it had blocks before. */
    boolean wasAdmitted() {
        return admitted;
    }

    /** Its blocks were allocated; the cache provided the first {@code cached} tokens. */
    void admit(int cached, int external) {
        computed = cached;
        provided = cached;
        externalTokens = external;
        if (!admitted) {
            admitted = true;
            cachedPromptTokens = cached;
        }
    }

    /**
     * Its read ended well. The prompt's last token stays to be computed, since its logits choose
     * the first token of the output, unless that is {@linkplain #knowsFirstToken known}. What was
     * cached counts as it did where the prompt was computed; where it is to be computed, what was
     * read of it counts as well.
     */
    void received() {
        provided = computed + externalTokens;
        KvTransferParams params = connectorRequest.params();
        if (isPrefill()) {
            cachedPromptTokens = Math.min(provided, promptTokens);
        } else if (params != null) {
            cachedPromptTokens =
                    Math.min(params.prefillCachedTokens().orElse(cachedPromptTokens), promptTokens);
        }
        computed = Math.min(provided, length - 1);
    }

    /**
     * Whether it has been read in full from an engine that told its first token. Only a prompt can
     * be: whoever has output was read before.
     */
    boolean knowsFirstToken() {
        return firstToken.told().isPresent() && provided == length;
    }

    /** Takes the first token that is known, so that nothing of the prompt is to be computed. */
    SampledToken takeFirstToken() {
        int token = firstToken.told().orElseThrow();
        computed = length;
        sampler.skip(token);
        return new SampledToken(token, null);
    }

    /** Somebody else has its blocks from now on; it has none. */
    BlockTable giveUpBlocks() {
        BlockTable given = blocks;
        blocks = new BlockTable();
        lostBlocks();
        return given;
    }

    /** Its blocks are gone. */
    void lostBlocks() {
        computed = 0;
        provided = 0;
    }

    /** The next {@code count} tokens, for the model. */
    SequenceChunk chunk(int count) {
        return new SequenceChunk(
                Arrays.copyOfRange(tokens, computed, computed + count),
                computed,
                blocks.toArray(),
                logitRows(count));
    }

    /** Rows of logits that its next {@code count} tokens give, the last ones'. */
    int logitRows(int count) {
        if (scoresPrompt()) {
            return count;
        }
        return count == uncomputed() ? 1 : 0;
    }

    /** Takes the rows of its next {@code count} tokens, before they count as computed. */
    void score(Logits logits, int firstRow, int count) {
        if (scores != null && scoresPrompt()) {
            scores.add(logits, firstRow, computed, count);
        }
    }

    /**
     * Its next {@code count} tokens have their K and V in its blocks.
     *
     * @return how many of them are prompt tokens that came neither from the cache nor from another
     *     engine
     */
    int computed(int count) {
        int before = Math.max(computed, provided);
        computed += count;
        return Math.max(0, Math.min(computed, promptTokens) - before);
    }

    /** Chooses the next token. */
    SampledToken sample(Logits logits, int row, Candidates candidates) {
        return sampler.next(logits, row, candidates);
    }

    /** Takes the chosen token, and tells the client what text it gave. */
    OutputProcessor.Step append(SampledToken sampled) {
        if (length == tokens.length) {
            tokens = Arrays.copyOf(tokens, length + Math.max(16, length / 2));
        }
        tokens[length++] = sampled.tokenId();
        OutputProcessor.Step step = output.accept(sampled.tokenId());
        if (scores != null && !promptTold) {
            promptTold = true;
            tell(new GenerationEvent.Prompt(scores.scores()));
        }
        tell(
                new GenerationEvent.Tokens(
                        step.text(),
                        List.of(sampled.tokenId()),
                        sampled.logprobs() == null ? List.of() : List.of(sampled.logprobs())));
        return step;
    }

    /** Tells the client that the output is complete. */
    void tellFinished(
            FinishReason reason,
            @Nullable StopReason stopReason,
            @Nullable KvTransferParams params) {
        tell(
                new GenerationEvent.Finished(
                        reason,
                        stopReason,
                        new GenerationEvent.Usage(
                                promptTokens, length - promptTokens, cachedPromptTokens),
                        params));
    }

    /** Tells the client that the output ends here, with the text that was held back. */
    void tellAborted(@Nullable KvTransferParams params) {
        String rest = output.abandon();
        if (!rest.isEmpty()) {
            tell(new GenerationEvent.Tokens(rest, List.of(), List.of()));
        }
        tellFinished(FinishReason.ABORT, null, params);
    }

    void tellFailed(GenerationEvent.FailureKind kind, String message) {
        tell(new GenerationEvent.Failed(kind, message));
    }

    private void tell(GenerationEvent event) {
        tell(listener, requestId, event);
    }

    /** Tells a client that its request was not taken. */
    static void tellRefused(
            GenerationListener listener,
            String requestId,
            GenerationEvent.FailureKind kind,
            String message) {
        tell(listener, requestId, new GenerationEvent.Failed(kind, message));
    }

    /** A client's fault must not become the engine's. */
    private static void tell(GenerationListener listener, String requestId, GenerationEvent event) {
        try {
            listener.onEvent(event);
        } catch (RuntimeException e) {
            LOG.log(
                    Level.WARNING,
                    () ->
                            "listener failed request=%s event=%s"
                                    .formatted(requestId, event.getClass().getSimpleName()),
                    e);
        }
    }
}
