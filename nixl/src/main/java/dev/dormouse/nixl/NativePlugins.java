package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.dormouse.foreign.Downcall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Plugins and backends of a native agent. The caller holds the agent's lock. */
final class NativePlugins {
    /** No plugin's text is near this; it bounds the search for the end. */
    private static final long MAX_TEXT_BYTES = 1 << 20;

    private final NativeAgent agent;
    private final Scratch scratch;

    NativePlugins(NativeAgent agent) {
        this.agent = agent;
        this.scratch = agent.scratch;
    }

    List<String> available() {
        try {
            int status =
                    (int)
                            NixlCapi.GET_AVAILABLE_PLUGINS.invokeExact(
                                    agent.pointer, scratch.pointer);
            agent.check(status, "list plugins", null, "");
            MemorySegment list = scratch.pointerValue();
            try {
                return strings(list);
            } finally {
                int ignored = (int) NixlCapi.DESTROY_STRING_LIST.invokeExact(list);
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    BackendOptions pluginOptions(String plugin) {
        try (Arena arena = Arena.ofConfined()) {
            int status =
                    (int)
                            NixlCapi.GET_PLUGIN_PARAMS.invokeExact(
                                    agent.pointer,
                                    arena.allocateFrom(plugin),
                                    scratch.pointer,
                                    scratch.secondPointer);
            agent.check(status, "get plugin options", null, "plugin=" + plugin);
            return takeOptions();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    BackendOptions backendOptions(MemorySegment backend, String plugin) {
        try {
            int status =
                    (int)
                            NixlCapi.GET_BACKEND_PARAMS.invokeExact(
                                    agent.pointer, backend, scratch.pointer, scratch.secondPointer);
            agent.check(status, "get backend options", null, "backend=" + plugin);
            return takeOptions();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    MemorySegment create(String plugin, Map<String, String> parameters) {
        try (Arena arena = Arena.ofConfined()) {
            int created = (int) NixlCapi.CREATE_PARAMS.invokeExact(scratch.pointer);
            agent.check(created, "create backend parameters", null, "plugin=" + plugin);
            MemorySegment params = scratch.pointerValue();
            try {
                for (Map.Entry<String, String> entry : parameters.entrySet()) {
                    int added =
                            (int)
                                    NixlCapi.PARAMS_ADD.invokeExact(
                                            params,
                                            arena.allocateFrom(entry.getKey()),
                                            arena.allocateFrom(entry.getValue()));
                    agent.check(added, "add backend parameter", null, entry.toString());
                }
                int status =
                        (int)
                                NixlCapi.CREATE_BACKEND.invokeExact(
                                        agent.pointer,
                                        arena.allocateFrom(plugin),
                                        params,
                                        scratch.pointer);
                agent.check(status, "create backend", null, "plugin=" + plugin + " " + parameters);
                return scratch.pointerValue();
            } finally {
                freeParameters(params);
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Frees the handle only; the backend lives as long as the agent. */
    void free(MemorySegment backend) {
        try {
            int ignored = (int) NixlCapi.DESTROY_BACKEND.invokeExact(backend);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Copies and frees the two lists that the last call returned. */
    private BackendOptions takeOptions() throws Throwable {
        MemorySegment types = scratch.pointerValue();
        MemorySegment params = scratch.secondPointer.get(ADDRESS, 0);
        try {
            return new BackendOptions(parameters(params), memoryTypes(types));
        } finally {
            int ignored = (int) NixlCapi.DESTROY_MEM_LIST.invokeExact(types);
            freeParameters(params);
        }
    }

    private List<String> strings(MemorySegment list) throws Throwable {
        int sized = (int) NixlCapi.STRING_LIST_SIZE.invokeExact(list, scratch.size);
        agent.check(sized, "size string list", null, "");
        long count = scratch.sizeValue();
        List<String> strings = new ArrayList<>();
        for (long i = 0; i < count; i++) {
            int got = (int) NixlCapi.STRING_LIST_GET.invokeExact(list, i, scratch.pointer);
            agent.check(got, "read string list", null, "index=" + i);
            strings.add(text(scratch.pointerValue()));
        }
        return List.copyOf(strings);
    }

    private Set<MemoryType> memoryTypes(MemorySegment list) throws Throwable {
        int sized = (int) NixlCapi.MEM_LIST_SIZE.invokeExact(list, scratch.size);
        agent.check(sized, "size memory type list", null, "");
        long count = scratch.sizeValue();
        Set<MemoryType> types = EnumSet.noneOf(MemoryType.class);
        for (long i = 0; i < count; i++) {
            int got = (int) NixlCapi.MEM_LIST_GET.invokeExact(list, i, scratch.number);
            agent.check(got, "read memory type list", null, "index=" + i);
            int code = scratch.number.get(JAVA_INT, 0);
            if (MemoryType.isCode(code)) {
                types.add(MemoryType.ofCode(code));
            }
        }
        return types;
    }

    /** The iterator's has_next speaks of the entry after the one it just gave. */
    private Map<String, String> parameters(MemorySegment params) throws Throwable {
        int asked = (int) NixlCapi.PARAMS_IS_EMPTY.invokeExact(params, scratch.flag);
        agent.check(asked, "size parameters", null, "");
        Map<String, String> parameters = new HashMap<>();
        if (scratch.flag.get(JAVA_BOOLEAN, 0)) {
            return parameters;
        }
        int begun = (int) NixlCapi.PARAMS_CREATE_ITERATOR.invokeExact(params, scratch.pointer);
        agent.check(begun, "read parameters", null, "");
        MemorySegment iterator = scratch.pointerValue();
        try {
            do {
                int got =
                        (int)
                                NixlCapi.PARAMS_ITERATOR_NEXT.invokeExact(
                                        iterator,
                                        scratch.pointer,
                                        scratch.secondPointer,
                                        scratch.flag);
                agent.check(got, "read parameters", null, "");
                parameters.put(
                        text(scratch.pointerValue()), text(scratch.secondPointer.get(ADDRESS, 0)));
            } while (scratch.flag.get(JAVA_BOOLEAN, 0));
        } finally {
            int ignored = (int) NixlCapi.PARAMS_DESTROY_ITERATOR.invokeExact(iterator);
        }
        return parameters;
    }

    private static void freeParameters(MemorySegment params) throws Throwable {
        int ignored = (int) NixlCapi.DESTROY_PARAMS.invokeExact(params);
    }

    private static String text(MemorySegment pointer) {
        return pointer.reinterpret(MAX_TEXT_BYTES).getString(0);
    }
}
