package dev.dormouse.cuda;

import java.util.regex.Pattern;

/**
 * What to compile for, by NVRTC's name: {@code sm_90} is machine code (a cubin) of 9.0, {@code
 * sm_90a} that with instructions of this generation only, {@code compute_75} PTX, which the driver
 * compiles for any device from 7.5 on.
 */
public record KernelTarget(String architecture) {
    private static final Pattern FORM = Pattern.compile("(sm|compute)_[0-9]{2,3}[af]?");

    /** Refuses what has not the form of a name. */
    public KernelTarget {
        if (!FORM.matcher(architecture).matches()) {
            throw new IllegalArgumentException(
                    "kernel target refused: " + architecture + "; name it as sm_90 or compute_75");
        }
    }

    /** Machine code for exactly this generation. */
    public static KernelTarget machineCode(ComputeCapability capability) {
        return new KernelTarget("sm_" + capability.major() + capability.minor());
    }

    /** Whether the result is PTX. */
    public boolean isPtx() {
        return architecture.startsWith("compute");
    }
}
