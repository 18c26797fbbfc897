package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;

/** Block lists and transfer requests of a native agent. The caller holds the agent's lock. */
final class NativeTransfers {
    // wrapper.h: nixl_capi_xfer_telemetry_s
    static final StructLayout TELEMETRY =
            MemoryLayout.structLayout(
                    JAVA_LONG.withName("start_time_us"),
                    JAVA_LONG.withName("post_duration_us"),
                    JAVA_LONG.withName("xfer_duration_us"),
                    JAVA_LONG.withName("total_bytes"),
                    JAVA_LONG.withName("desc_count"));

    private static final VarHandle POST_DURATION = field("post_duration_us");
    private static final VarHandle TRANSFER_DURATION = field("xfer_duration_us");
    private static final VarHandle TOTAL_BYTES = field("total_bytes");
    private static final VarHandle DESCRIPTOR_COUNT = field("desc_count");

    /** What nixl_capi_prep_xfer_dlist takes for the local side ({@code NIXL_INIT_AGENT}). */
    private static final String LOCAL_SIDE = "";

    private final NativeAgent agent;
    private final Scratch scratch;
    private final MemorySegment notifyingArguments;

    NativeTransfers(NativeAgent agent) {
        this.agent = agent;
        this.scratch = agent.scratch;
        try {
            int status = (int) NixlCapi.CREATE_OPT_ARGS.invokeExact(scratch.pointer);
            agent.check(status, "create optional arguments", null, "");
            notifyingArguments = scratch.pointerValue();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void free() {
        try {
            int ignored = (int) NixlCapi.DESTROY_OPT_ARGS.invokeExact(notifyingArguments);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** The native list, to be freed with {@link #freeBlocks}. */
    MemorySegment blockList(BlockList blocks) {
        try {
            int status =
                    (int)
                            NixlCapi.CREATE_XFER_DLIST.invokeExact(
                                    blocks.type().code(), scratch.pointer);
            agent.check(status, "create block list", null, blocks.toString());
            MemorySegment list = scratch.pointerValue();
            try {
                blocks.forEachRun(
                        (address, stride, length, count, device) ->
                                addRun(list, address, stride, length, count, device));
                return list;
            } catch (RuntimeException | Error e) {
                freeBlocks(list);
                throw e;
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void freeBlocks(MemorySegment list) {
        try {
            int ignored = (int) NixlCapi.DESTROY_XFER_DLIST.invokeExact(list);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Prepares blocks for use by index.
     *
     * @param peer whose blocks they are, or null for local ones
     */
    MemorySegment prepare(@Nullable String peer, BlockList blocks) {
        MemorySegment list = blockList(blocks);
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            NixlCapi.PREP_XFER_DLIST.invokeExact(
                                    agent.pointer,
                                    arena.allocateFrom(peer == null ? LOCAL_SIDE : peer),
                                    list,
                                    scratch.pointer,
                                    MemorySegment.NULL);
            agent.check(status, "prepare blocks", peer, blocks.toString());
            return scratch.pointerValue();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        } finally {
            freeBlocks(list);
        }
    }

    /** Frees a prepared list; the handle is gone whatever NIXL returns. */
    void releasePrepared(MemorySegment prepared, @Nullable String peer) {
        try {
            int status =
                    (int) NixlCapi.RELEASE_XFER_DLIST_HANDLE.invokeExact(agent.pointer, prepared);
            agent.check(status, "release prepared blocks", peer, "");
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** A request over pairs of prepared blocks. */
    MemorySegment make(
            TransferOperation operation,
            MemorySegment local,
            int[] localIndices,
            MemorySegment remote,
            int[] remoteIndices,
            String peer,
            byte @Nullable [] notification) {
        try {
            MemorySegment arguments = arguments(notification);
            MemorySegment nativeLocal = scratch.copyFirst(localIndices);
            MemorySegment nativeRemote = scratch.copySecond(remoteIndices);
            int status =
                    (int)
                            NixlCapi.MAKE_XFER_REQ.invokeExact(
                                    agent.pointer,
                                    operation.code(),
                                    local,
                                    nativeLocal,
                                    (long) localIndices.length,
                                    remote,
                                    nativeRemote,
                                    (long) remoteIndices.length,
                                    scratch.pointer,
                                    arguments);
            if (status < 0) {
                throw new NixlStatusException(
                        "create transfer",
                        status,
                        agent.name,
                        peer,
                        operation + " blocks=" + localIndices.length);
            }
            return scratch.pointerValue();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** A request over whole lists, without preparing them. */
    MemorySegment create(
            TransferOperation operation,
            BlockList local,
            BlockList remote,
            String peer,
            byte @Nullable [] notification) {
        MemorySegment localList = blockList(local);
        try {
            MemorySegment remoteList = blockList(remote);
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment arguments = arguments(notification);
                int status =
                        (int)
                                NixlCapi.CREATE_XFER_REQ.invokeExact(
                                        agent.pointer,
                                        operation.code(),
                                        localList,
                                        remoteList,
                                        arena.allocateFrom(peer),
                                        scratch.pointer,
                                        arguments);
                agent.check(
                        status, "create transfer", peer, operation + " " + local + " " + remote);
                return scratch.pointerValue();
            } finally {
                freeBlocks(remoteList);
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        } finally {
            freeBlocks(localList);
        }
    }

    /** Returns NIXL's status; a failure is an outcome here. */
    int post(MemorySegment request, byte @Nullable [] notification) {
        try {
            MemorySegment arguments = arguments(notification);
            return (int) NixlCapi.POST_XFER_REQ.invokeExact(agent.pointer, request, arguments);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Returns NIXL's status, and drives the transfer on when there is no progress thread. */
    int status(MemorySegment request) {
        try {
            return (int) NixlCapi.GET_XFER_STATUS.invokeExact(agent.pointer, request);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    TransferTelemetry telemetry(MemorySegment request, String peer) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(TELEMETRY);
            int status =
                    (int) NixlCapi.GET_XFER_TELEMETRY.invokeExact(agent.pointer, request, struct);
            agent.check(status, "get transfer telemetry", peer, "");
            return new TransferTelemetry(
                    Duration.of((long) POST_DURATION.get(struct, 0L), ChronoUnit.MICROS),
                    Duration.of((long) TRANSFER_DURATION.get(struct, 0L), ChronoUnit.MICROS),
                    (long) TOTAL_BYTES.get(struct, 0L),
                    (long) DESCRIPTOR_COUNT.get(struct, 0L));
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Frees a request. NIXL cancels one that is under way, but over UCX a cancelled transfer may
     * still write its memory, so the caller makes sure that it is not, or that the agent goes next.
     *
     * @return whether NIXL let go of it
     */
    boolean release(MemorySegment request) {
        try {
            int released = (int) NixlCapi.RELEASE_XFER_REQ.invokeExact(agent.pointer, request);
            if (released < 0) {
                return false;
            }
            int ignored = (int) NixlCapi.DESTROY_XFER_REQ.invokeExact(request);
            return true;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Null for no message, else the agent's reused arguments that carry it. */
    private MemorySegment arguments(byte @Nullable [] notification) throws Throwable {
        if (notification == null) {
            return MemorySegment.NULL;
        }
        MemorySegment message = scratch.copyFirst(notification);
        int set =
                (int)
                        NixlCapi.OPT_ARGS_SET_NOTIF_MSG.invokeExact(
                                notifyingArguments, message, (long) notification.length);
        agent.check(set, "attach notification", null, "bytes=" + notification.length);
        int enabled = (int) NixlCapi.OPT_ARGS_SET_HAS_NOTIF.invokeExact(notifyingArguments, true);
        agent.check(enabled, "attach notification", null, "bytes=" + notification.length);
        return notifyingArguments;
    }

    private void addRun(
            MemorySegment list, long address, long stride, long length, int count, long device) {
        try {
            for (int i = 0; i < count; i++) {
                long start = address + i * stride;
                int status =
                        (int) NixlCapi.XFER_DLIST_ADD_DESC.invokeExact(list, start, length, device);
                agent.check(status, "add block", null, "");
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static VarHandle field(String name) {
        return TELEMETRY.varHandle(MemoryLayout.PathElement.groupElement(name));
    }
}
