package dev.dormouse.cuda;

/**
 * Something native that belongs to a context, with one owner who closes it. Its methods hold its
 * lock, so that no other thread can close it under a call.
 */
abstract sealed class CudaObject implements AutoCloseable
        permits AddressRange,
                CudaEvent,
                CudaModule,
                CudaStream,
                DeviceBuffer,
                PhysicalMemory,
                PinnedMemory {
    final CudaContext context;

    /** Held while the native part is used. Locks of streams are taken before all others. */
    final Object lock = new Object();

    private boolean open = true;

    CudaObject(CudaContext context) {
        this.context = context;
    }

    /** Frees the native part, every piece of it, whatever fails. The context is current. */
    abstract void free();

    /** Enters a new object into its context; when that is closed by now, frees the object. */
    static <T extends CudaObject> T attached(T object) {
        try {
            object.context.attach(object);
        } catch (IllegalStateException e) {
            object.free();
            throw e;
        }
        return object;
    }

    /** The context it lives in. */
    public final CudaContext context() {
        return context;
    }

    /** Whether it has not been closed. */
    public final boolean isOpen() {
        synchronized (lock) {
            return open;
        }
    }

    /**
     * Frees it, once; closing again does nothing.
     *
     * @throws CudaException when the driver refuses; it is closed all the same
     */
    @Override
    public final void close() {
        synchronized (lock) {
            if (!open) {
                return;
            }
            open = false;
            try {
                context.makeCurrent("close");
                free();
            } finally {
                context.detach(this);
            }
        }
    }

    /** To be called with the lock held; makes the context current. */
    final void requireOpen(String operation) {
        if (!open) {
            throw new IllegalStateException(operation + " refused: " + this + " is closed");
        }
        context.makeCurrent(operation);
    }

    /** Refuses an object of another context. */
    final void requireSameContext(CudaObject other, String operation) {
        if (other.context != context) {
            throw new IllegalArgumentException(
                    "%s refused: %s is of %s, %s of %s"
                            .formatted(operation, other, other.context, this, context));
        }
    }
}
