// Copies a list of blocks of one length, each to a place of its own, in one launch.
//
// A block is cut into pieces of at most PIECE bytes. Pieces are numbered through the list, so that
// many small blocks and few large ones spread over the multiprocessors alike; 2^31 of them at most.
//
// gather_16, gather_4 and gather_1: a warp copies a piece, each thread with UNROLL loads on their
// way before the first store. They differ in what addresses and length are multiples of.
//
// gather_bulk: one thread per block of threads drives the copy engine of its multiprocessor
// (compute capability 9.0) through a ring of shared memory, STAGES pieces of CHUNK bytes, LOOKAHEAD
// of them being read while the others are written. Addresses and length are multiples of 16.
//
// Macros: UNROLL, THREADS, STREAMING_STORES, CHUNK, STAGES, LOOKAHEAD.

typedef unsigned int u32;
typedef unsigned long long u64;

// One block to copy: x is the source's address, y the target's.
typedef ulonglong2 Entry;

constexpr u32 WARP = 32;
constexpr u32 WARPS = THREADS / WARP;

// Threads that a multiprocessor should hold at once, which bounds their registers: what is on its
// way is 64 to 128 KiB.
constexpr u32 RESIDENT = UNROLL >= 16 ? 512 : UNROLL >= 8 ? 1024 : 1536;
constexpr u32 RESIDENT_BLOCKS = RESIDENT > THREADS ? RESIDENT / THREADS : 1;

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
#if STREAMING_STORES
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
#else
    *to = v;
#endif
}

__device__ __forceinline__ void store(u32* to, u32 v) { *to = v; }

__device__ __forceinline__ void store(unsigned char* to, unsigned char v) { *to = v; }

template <typename T>
__device__ __forceinline__ void copyPiece(Entry entry, u64 first, u64 elements) {
    const u32 lane = threadIdx.x % WARP;
    const T* from = reinterpret_cast<const T*>(entry.x) + first + lane;
    T* to = reinterpret_cast<T*>(entry.y) + first + lane;
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

// Each warp takes every stride-th piece, and loads the next one's entry before it waits for bytes.
template <typename T>
__device__ __forceinline__ void gather(const Entry* list, u32 pieces, u32 perBlock, u64 bytes) {
    const u64 elements = bytes / sizeof(T);
    const u32 stride = gridDim.x * WARPS;
    u32 piece = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (piece >= pieces) return;
    u32 block = piece / perBlock;
    Entry entry = __ldg(list + block);
    while (true) {
        const u64 first = (u64) (piece - block * perBlock) * (WARP * UNROLL);
        const u32 next = piece + stride;
        const bool more = next < pieces;
        Entry nextEntry = entry;
        if (more) {
            block = next / perBlock;
            nextEntry = __ldg(list + block);
        }
        copyPiece<T>(entry, first, elements);
        if (!more) return;
        piece = next;
        entry = nextEntry;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
gather_16(const Entry* list, u32 pieces, u32 perBlock, u64 bytes) {
    gather<uint4>(list, pieces, perBlock, bytes);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
gather_4(const Entry* list, u32 pieces, u32 perBlock, u64 bytes) {
    gather<u32>(list, pieces, perBlock, bytes);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS)
gather_1(const Entry* list, u32 pieces, u32 perBlock, u64 bytes) {
    gather<unsigned char>(list, pieces, perBlock, bytes);
}

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ u32 shared(const void* p) { return (u32) __cvta_generic_to_shared(p); }

// The engine's bytes count towards the barrier; it flips when they and this arrival are there.
__device__ __forceinline__ void startLoad(void* to, u64 from, u32 bytes, u64* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(barrier)) : "memory");
}

__device__ __forceinline__ void awaitLoad(u64* barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared(barrier)), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void startStore(u64 to, const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(shared(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(32)
gather_bulk(const Entry* list, u32 pieces, u32 perBlock, u64 bytes) {
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ u64 barriers[STAGES];
    __shared__ u64 targets[STAGES];
    __shared__ u32 lengths[STAGES];

    const u32 lane = threadIdx.x;
    if (blockIdx.x >= pieces) return;
    const u32 count = (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x;
    if (lane == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                         :: "r"(shared(barriers + i)) : "memory");
        }
        // the copy engine must see the barriers initialised
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();

    // the entries of 32 pieces at a time, one per lane
    u64 source = 0, target = 0;
    u32 length = 0;
    for (u32 k = 0; k < count + LOOKAHEAD; k++) {
        const u32 slot = k % WARP;
        if (slot == 0 && k + lane < count) {
            const u32 piece = blockIdx.x + (k + lane) * gridDim.x;
            const u32 block = piece / perBlock;
            const Entry entry = __ldg(list + block);
            const u64 offset = (u64) (piece - block * perBlock) * CHUNK;
            const u64 left = bytes - offset;
            source = entry.x + offset;
            target = entry.y + offset;
            length = left < CHUNK ? (u32) left : CHUNK;
        }
        const u64 from = __shfl_sync(0xffffffffu, source, slot);
        const u64 to = __shfl_sync(0xffffffffu, target, slot);
        const u32 size = __shfl_sync(0xffffffffu, length, slot);
        if (lane == 0) {
            if (k < count) {
                const u32 stage = k % STAGES;
                if (k >= STAGES) {
                    // stores of pieces 0 to k-1-LOOKAHEAD are on their way; that of k-STAGES, which
                    // had this stage, must have read it
                    asm volatile("cp.async.bulk.wait_group.read %0;"
                                 :: "n"(STAGES - 1 - LOOKAHEAD) : "memory");
                }
                targets[stage] = to;
                lengths[stage] = size;
                startLoad(ring + stage * CHUNK, from, size, barriers + stage);
            }
            if (k >= LOOKAHEAD) {
                const u32 j = k - LOOKAHEAD;
                const u32 stage = j % STAGES;
                awaitLoad(barriers + stage, (j / STAGES) & 1);
                startStore(targets[stage], ring + stage * CHUNK, lengths[stage]);
            }
        }
        __syncwarp();
    }
    if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif
