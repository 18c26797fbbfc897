// Copies a list of blocks of one length, each to a place of its own, in one launch.
//
// A block is cut into pieces of WARP * UNROLL elements. Pieces are numbered through the list, so
// that many small blocks and few large ones spread over the multiprocessors alike; 2^31 of them at
// most.
//
// A warp copies a piece, each thread with UNROLL loads on their way before the first store.
// gather_16, gather_4 and gather_1 differ in what addresses and length are multiples of.
//
// The list is an argument: a launch takes it along, where a table in device memory would have to be
// sent first (5 us), and one in host memory asked for by every warp. Few blocks have a shorter form,
// since a launch takes the whole array along (5.5 us of 4 KiB, 9.8 us of 32 KiB; on an H200). For the
// same reason places are distances from the first block, in units of 2^shift bytes.

typedef unsigned int u32;
typedef unsigned long long u64;

// Measured on an H200, blocks of 16 KiB from 1 GiB: 0.94 of a plain copy's rate, of 64 KiB 0.95; 16
// loads in blocks of 128 threads do as well, the copy engines of the multiprocessors 0.90 to 0.93.
constexpr u32 WARP = 32;
constexpr u32 UNROLL = 4;
constexpr u32 THREADS = 512;
// What a multiprocessor should hold at once, which bounds the registers: 96 KiB are on their way.
constexpr u32 RESIDENT_BLOCKS = 3;

// What is copied is read once: it should push nothing out of the caches. The read-only path is
// allowed since nobody writes a source during the launch.
__device__ __forceinline__ uint4 load(const uint4* from) {
    uint4 v;
#if __CUDA_ARCH__ >= 800
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
#else
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
#endif
    return v;
}

__device__ __forceinline__ u32 load(const u32* from) {
    u32 v;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
    return v;
}

__device__ __forceinline__ unsigned char load(const unsigned char* from) {
    u32 v;
    asm volatile("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=r"(v) : "l"(from));
    return (unsigned char) v;
}

__device__ __forceinline__ void store(uint4* to, uint4 v) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ void store(u32* to, u32 v) { *to = v; }

__device__ __forceinline__ void store(unsigned char* to, unsigned char v) { *to = v; }

template <typename T>
__device__ __forceinline__ void copyPiece(u64 source, u64 target, u64 first, u64 elements) {
    const u32 lane = threadIdx.x % WARP;
    const T* from = reinterpret_cast<const T*>(source) + first + lane;
    T* to = reinterpret_cast<T*>(target) + first + lane;
    const u64 left = elements - first;
    T v[UNROLL];
    if (left >= WARP * UNROLL) {
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) v[i] = load(from + i * WARP);
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) store(to + i * WARP, v[i]);
    } else {
        const u32 rest = (u32) left;
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            if (lane + i * WARP < rest) v[i] = load(from + i * WARP);
        }
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            if (lane + i * WARP < rest) store(to + i * WARP, v[i]);
        }
    }
}

// A distance in bytes.
__device__ __forceinline__ u64 bytesOf(int distance, u32 shift) {
    return (u64) ((long long) distance << shift);
}

// Distances of sources from the first source, and of targets from the first target.
template <u32 CAPACITY>
struct List {
    int sources[CAPACITY];
    int targets[CAPACITY];
};

template <typename T, u32 CAPACITY>
__device__ __forceinline__ void gather(const List<CAPACITY>& list, u32 shift, u32 pieces,
                                       u32 perBlock, u64 source, u64 target, u64 bytes) {
    const u32 piece = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (piece >= pieces) return;
    const u32 block = piece / perBlock;
    const u64 first = (u64) (piece - block * perBlock) * (WARP * UNROLL);
    copyPiece<T>(source + bytesOf(list.sources[block], shift),
                 target + bytesOf(list.targets[block], shift), first, bytes / sizeof(T));
}

#define KERNEL(NAME, TYPE, CAPACITY)                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)                         \
    NAME##_##CAPACITY(const __grid_constant__ List<CAPACITY> list, u32 shift, u32 pieces,          \
                      u32 perBlock, u64 source, u64 target, u64 bytes) {                           \
        gather<TYPE>(list, shift, pieces, perBlock, source, target, bytes);                        \
    }

#define KERNELS(CAPACITY)                                                                          \
    KERNEL(gather_16, uint4, CAPACITY)                                                             \
    KERNEL(gather_4, u32, CAPACITY)                                                                \
    KERNEL(gather_1, unsigned char, CAPACITY)

// The arguments of a launch may have 32,764 bytes, from compute capability 7.0 on.
KERNELS(512)
KERNELS(4088)
