// Fills memory with words that tell where they were, and finds words that are elsewhere.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 word(u64 index) {
    u64 x = index * 0x9e3779b97f4a7c15ull;
    return (u32) (x >> 32) ^ (u32) x;
}

// words[i] = word(first + i)
extern "C" __global__ void fill(u32* words, u64 count, u64 first) {
    const u64 stride = (u64) gridDim.x * blockDim.x;
    for (u64 i = (u64) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        words[i] = word(first + i);
    }
}

// order[b] is the number of the source's block that should be the target's block b.
extern "C" __global__ void compare(const u32* words, u64 count, const u32* order, u64 perBlock,
                                   u64* wrong) {
    const u64 stride = (u64) gridDim.x * blockDim.x;
    u64 bad = 0;
    for (u64 i = (u64) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const u64 block = i / perBlock;
        bad += words[i] != word((u64) order[block] * perBlock + (i - block * perBlock));
    }
    if (bad) atomicAdd(wrong, bad);
}
