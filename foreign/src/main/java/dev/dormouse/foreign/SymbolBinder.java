package dev.dormouse.foreign;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Binds the functions of one library, all or nothing.
 *
 * <p>Meant for the static initialiser of a class of {@code static final} handles: binding never
 * throws there, so that a missing library shows as the exception of {@link #verify()} and not as an
 * {@link ExceptionInInitializerError}. A handle whose function is missing throws that same
 * exception.
 *
 * <p>Not thread-safe; used by one initialiser.
 */
public final class SymbolBinder {
    private static final Linker LINKER = Linker.nativeLinker();

    private final String libraryName;
    private final SymbolLookup lookup;
    private final @Nullable String absence;
    private final String remedy;
    private final List<String> missing = new ArrayList<>();

    SymbolBinder(String libraryName, SymbolLookup lookup, @Nullable String absence, String remedy) {
        this.libraryName = libraryName;
        this.lookup = lookup;
        this.absence = absence;
        this.remedy = remedy;
    }

    /** The functions of libc, which every process has. */
    static SymbolBinder ofLibc() {
        return new SymbolBinder("libc", LINKER.defaultLookup(), null, "use glibc");
    }

    /** A function that returns a value. */
    public MethodHandle function(String name, MemoryLayout result, MemoryLayout... parameters) {
        return bind(name, FunctionDescriptor.of(result, parameters));
    }

    /** A function that returns nothing. */
    public MethodHandle procedure(String name, MemoryLayout... parameters) {
        return bind(name, FunctionDescriptor.ofVoid(parameters));
    }

    /**
     * A function that sets {@code errno}. The handle takes a leading segment of {@link
     * CapturedErrno} that receives it.
     */
    MethodHandle errnoFunction(String name, MemoryLayout result, MemoryLayout... parameters) {
        return bind(name, FunctionDescriptor.of(result, parameters), CapturedErrno.OPTION);
    }

    /**
     * Passes only when the library is there and has every function bound so far.
     *
     * @throws NativeLibraryException naming what was tried, or all missing functions
     */
    public void verify() {
        if (absence != null) {
            throw new NativeLibraryException(absence);
        }
        if (!missing.isEmpty()) {
            throw new NativeLibraryException(
                    "bind "
                            + libraryName
                            + " failed: "
                            + missing.size()
                            + " functions are missing: "
                            + String.join(", ", missing)
                            + "; the library is of another version, "
                            + remedy);
        }
    }

    private MethodHandle bind(
            String name, FunctionDescriptor descriptor, Linker.Option... options) {
        Optional<MemorySegment> address = lookup.find(name);
        if (address.isPresent()) {
            return LINKER.downcallHandle(address.get(), descriptor, options);
        }
        missing.add(name);
        return refusing(LINKER.downcallHandle(descriptor, options).type().dropParameterTypes(0, 1));
    }

    private MethodHandle refusing(MethodType type) {
        try {
            MethodHandle refuse =
                    MethodHandles.lookup().bind(this, "verify", MethodType.methodType(void.class));
            MethodHandle typed =
                    MethodHandles.filterReturnValue(refuse, MethodHandles.zero(type.returnType()));
            return MethodHandles.dropArguments(typed, 0, type.parameterList());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }
}
