package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

/** A holder P and a reader D, and prompts of two blocks from one to the other. */
final class ModelPair {
    static final int TOKENS = 2 * ModelEngine.BLOCK_TOKENS;
    static final int[] P_BLOCKS = {3, 1};
    static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine d;
    private ModelEngine p;
    private int requests;

    ModelPair() {
        p = world.start("P");
        d = world.start("D");
    }

    ModelWorld world() {
        return world;
    }

    ModelEngine p() {
        return p;
    }

    ModelEngine d() {
        return d;
    }

    /** P's process ends, and another one takes its address. */
    void restartP(String engineId) {
        int port = p.scheduler().sideChannelPort();
        p.kill();
        p = world.start(world.config(engineId).instanceId("P-again").sideChannelPort(port));
    }

    /** P prefills a prompt. */
    KvTransferParams prefill(long content) {
        return p.prefill("prompt" + requests++, TOKENS, P_BLOCKS, content);
    }

    /** Orders a read at D, waits for its end, and tells its id. */
    String read(KvTransferParams params) {
        String id = "read" + requests++;
        d.decode(id, TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.received()).contains(id);
        return id;
    }

    /** A read that must bring {@code content}. */
    void assertReads(KvTransferParams params, long content) {
        assertThat(d.failed()).doesNotContain(read(params));
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
    }

    /** A read that must fail. */
    void assertFails(KvTransferParams params) {
        assertThat(d.failed()).contains(read(params));
    }

    /** A whole prompt from P to D. */
    void assertTransfers(long content) {
        assertReads(prefill(content), content);
    }
}
