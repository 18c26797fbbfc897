package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.Libc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The native agent: its life, registrations and metadata, with every status checked. The caller
 * holds the agent's lock and has checked its arguments.
 */
final class NativeAgent {
    // wrapper.h: nixl_capi_agent_config_s. num_workers is ignored by wrapper.cpp, the listener is
    // for NIXL's own exchange of metadata, which is not used here.
    static final StructLayout CONFIG =
            MemoryLayout.structLayout(
                    JAVA_BOOLEAN.withName("enable_prog_thread"),
                    JAVA_BOOLEAN.withName("enable_listen_thread"),
                    MemoryLayout.paddingLayout(2),
                    JAVA_INT.withName("listen_port"),
                    JAVA_INT.withName("thread_sync"),
                    JAVA_INT.withName("num_workers"),
                    JAVA_LONG.withName("pthr_delay_us"),
                    JAVA_LONG.withName("lthr_delay_us"),
                    JAVA_BOOLEAN.withName("capture_telemetry"),
                    MemoryLayout.paddingLayout(7));

    private static final VarHandle PROGRESS_THREAD = field("enable_prog_thread");
    private static final VarHandle THREAD_SYNC = field("thread_sync");
    private static final VarHandle NUM_WORKERS = field("num_workers");
    private static final VarHandle PROGRESS_DELAY = field("pthr_delay_us");
    private static final VarHandle LISTEN_DELAY = field("lthr_delay_us");
    private static final VarHandle TELEMETRY = field("capture_telemetry");

    /** NIXL's default; the listener is off, so nothing waits this long. */
    private static final long LISTEN_DELAY_MICROS = 100_000;

    final String name;
    final MemorySegment pointer;
    final Scratch scratch;

    private NativeAgent(String name, MemorySegment pointer, Scratch scratch) {
        this.name = name;
        this.pointer = pointer;
        this.scratch = scratch;
    }

    static NativeAgent create(NixlAgentConfig config) {
        NixlCapi.verify();
        Scratch scratch = new Scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(CONFIG);
            PROGRESS_THREAD.set(struct, 0L, config.progressThread());
            THREAD_SYNC.set(struct, 0L, config.threadSync().code());
            NUM_WORKERS.set(struct, 0L, 1);
            PROGRESS_DELAY.set(struct, 0L, config.progressDelay().toNanos() / 1000);
            LISTEN_DELAY.set(struct, 0L, LISTEN_DELAY_MICROS);
            TELEMETRY.set(struct, 0L, config.telemetry());
            int status =
                    (int)
                            NixlCapi.CREATE_AGENT.invokeExact(
                                    arena.allocateFrom(config.name()), struct, scratch.pointer);
            if (status < 0) {
                throw new NixlStatusException(
                        "create agent", status, config.name(), null, config.toString());
            }
            return new NativeAgent(config.name(), scratch.pointerValue(), scratch);
        } catch (Throwable t) {
            scratch.close();
            throw Downcall.rethrow(t);
        }
    }

    /** Frees the agent and all that NIXL still knows of it. */
    void destroy() {
        try {
            int status = (int) NixlCapi.DESTROY_AGENT.invokeExact(pointer);
            check(status, "destroy agent", null, "name=" + name);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        } finally {
            scratch.close();
        }
    }

    /** The native list of ranges, to be freed with {@link #freeRanges}. */
    MemorySegment rangeList(MemoryType type, List<MemoryRange> ranges) {
        try {
            int status = (int) NixlCapi.CREATE_REG_DLIST.invokeExact(type.code(), scratch.pointer);
            check(status, "create registration list", null, "type=" + type);
            MemorySegment list = scratch.pointerValue();
            for (MemoryRange range : ranges) {
                int added =
                        (int)
                                NixlCapi.REG_DLIST_ADD_DESC.invokeExact(
                                        list,
                                        range.address(),
                                        range.lengthBytes(),
                                        range.deviceId(),
                                        MemorySegment.NULL,
                                        0L);
                if (added < 0) {
                    freeRanges(list);
                    check(added, "add range to registration list", null, range.toString());
                }
            }
            return list;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void freeRanges(MemorySegment list) {
        try {
            int ignored = (int) NixlCapi.DESTROY_REG_DLIST.invokeExact(list);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void register(MemorySegment list, String values) {
        try {
            int status = (int) NixlCapi.REGISTER_MEM.invokeExact(pointer, list, MemorySegment.NULL);
            check(status, "register memory", null, values);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void deregister(MemorySegment list, String values) {
        try {
            int status =
                    (int) NixlCapi.DEREGISTER_MEM.invokeExact(pointer, list, MemorySegment.NULL);
            check(status, "deregister memory", null, values);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    byte[] localMetadata() {
        try {
            int status =
                    (int) NixlCapi.GET_LOCAL_MD.invokeExact(pointer, scratch.pointer, scratch.size);
            check(status, "get local metadata", null, "all registrations");
            return takeBlob();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    byte[] partialMetadata(MemorySegment list, String values) {
        try {
            int status =
                    (int)
                            NixlCapi.GET_LOCAL_PARTIAL_MD.invokeExact(
                                    pointer,
                                    list,
                                    scratch.pointer,
                                    scratch.size,
                                    MemorySegment.NULL);
            check(status, "get partial local metadata", null, values);
            return takeBlob();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void load(byte[] metadata, String peer) {
        try {
            MemorySegment blob = scratch.copyFirst(metadata);
            int status =
                    (int)
                            NixlCapi.LOAD_REMOTE_MD.invokeExact(
                                    pointer, blob, (long) metadata.length, scratch.pointer);
            check(
                    status,
                    "load remote metadata",
                    peer,
                    "bytes="
                            + metadata.length
                            + " (this agent may not be able to load the peer again)");
            Libc.free(scratch.pointerValue());
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Whether the peer is loaded and, unless {@code blocks} is null's address, holds them.
     *
     * @param blocks a native list of blocks, or {@link MemorySegment#NULL}
     */
    boolean isLoaded(String peer, MemorySegment blocks) {
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            NixlCapi.CHECK_REMOTE_MD.invokeExact(
                                    pointer, arena.allocateFrom(peer), blocks);
            if (status == NixlStatus.NOT_FOUND.code()) {
                return false;
            }
            check(status, "check remote metadata", peer, "");
            return true;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Drops the peer; that NIXL dropped it already is fine. */
    void invalidate(String peer) {
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            NixlCapi.INVALIDATE_REMOTE_MD.invokeExact(
                                    pointer, arena.allocateFrom(peer));
            if (status != NixlStatus.NOT_FOUND.code()) {
                check(status, "invalidate remote metadata", peer, "");
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void connect(String peer) {
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            NixlCapi.MAKE_CONNECTION.invokeExact(
                                    pointer, arena.allocateFrom(peer), MemorySegment.NULL);
            check(status, "connect", peer, "all common backends");
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void check(int status, String operation, @Nullable String peer, String values) {
        if (status < 0) {
            throw new NixlStatusException(operation, status, name, peer, values);
        }
    }

    /** Copies and frees what the last call allocated with malloc. */
    private byte[] takeBlob() {
        MemorySegment blob = scratch.pointerValue();
        byte[] bytes = scratch.bytesValue();
        Libc.free(blob);
        return bytes;
    }

    private static VarHandle field(String name) {
        return CONFIG.varHandle(MemoryLayout.PathElement.groupElement(name))
                .withInvokeExactBehavior();
    }
}
