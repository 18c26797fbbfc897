package dev.dormouse.model;

/** Element types of a KV cache; both are 16 bits wide. */
public enum KvType {
    /** IEEE half precision. */
    F16("float16"),
    /** The upper half of a single precision float. */
    BF16("bfloat16");

    private final String dtype;

    KvType(String dtype) {
        this.dtype = dtype;
    }

    /** Bytes per element. */
    public int bytes() {
        return 2;
    }

    /** The name that vLLM gives this type, without its {@code torch.} prefix. */
    public String dtype() {
        return dtype;
    }
}
