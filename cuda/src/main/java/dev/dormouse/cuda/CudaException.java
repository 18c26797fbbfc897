package dev.dormouse.cuda;

/**
 * A call of the CUDA driver, NVRTC or NVML failed. The message has the call, its values, the
 * library's error and what to do.
 */
public final class CudaException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String call;
    private final int code;
    private final String errorName;

    /** A failure, also for models of a device that fail as the driver does. */
    public CudaException(
            String call, String values, int code, String errorName, String text, String remedy) {
        super("%s failed: %s: %s (%s); %s".formatted(call, values, errorName, text, remedy));
        this.call = call;
        this.code = code;
        this.errorName = errorName;
    }

    /** The function that failed, as {@code cuMemCreate}. */
    public String call() {
        return call;
    }

    /**
     * What it returned, a number of {@code CUresult}, {@code nvrtcResult} or {@code nvmlReturn_t},
     * or of libc's {@code errno}.
     */
    public int code() {
        return code;
    }

    /** The name of {@link #code()}, as {@code CUDA_ERROR_OUT_OF_MEMORY}. */
    public String errorName() {
        return errorName;
    }

    /** Whether the device had too little memory, which a smaller request may avoid. */
    public boolean isOutOfMemory() {
        return errorName.equals("CUDA_ERROR_OUT_OF_MEMORY");
    }
}
