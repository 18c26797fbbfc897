// A stand-in for libcuda.so.1 on machines without a GPU: a "device" whose memory is the host's, and a
// second one that shares it where a file "pair" lies beside this library.
// It keeps the driver's rules that the binding relies on, counts what is alive, and fails on demand.
// Streams do their work at once, or as late as they may. Of kernels it knows gather_16, gather_4 and gather_1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };
#define GRANULARITY ((size_t) 2 << 20)
#define TOTAL ((size_t) 1 << 30)

typedef struct { int type, id; } Location;
typedef struct {
    int type, handleTypes;
    Location location;
    void *metadata;
    struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } f;
} Properties;
typedef struct { Location location; int flags; } Access;
typedef struct { int fd; size_t size; int references; } Memory;
typedef struct { uintptr_t start; size_t size; Memory *memory; } Piece;

static __thread void *current;
static int contexts[2];
#define PIECES 1024
static Piece pieces[PIECES];
static _Atomic long live, used, misuses;
static char failing[64];
static int failAfter, failCode;

// The call of that name after the next `after` ones fails with the code.
void standin_fail(const char *call, int after, int code) {
    snprintf(failing, sizeof failing, "%s", call);
    failAfter = after;
    failCode = code;
}
long standin_live(void) { return live; }
long standin_used(void) { return used; }
// Calls whose arguments no caller may let through, whatever it was told by others.
long standin_misuses(void) { return misuses; }

static int injected(const char *call) {
    if (strcmp(call, failing) != 0 || failAfter-- > 0) return OK;
    failing[0] = 0;
    return failCode;
}
// Copies that wait, in the order of their calls, for somebody who waits for them.
typedef struct { void *to; const void *from; size_t n; } Copy;
#define COPIES 64
static Copy copies[COPIES];
static long queued, done;
static bool late;
static void finish(long count) {
    for (; done < count; done++) memcpy(copies[done % COPIES].to, copies[done % COPIES].from, copies[done % COPIES].n);
}
// From one thread only, while nothing is queued.
void standin_late(int on) { late = on; }
#define REQUIRE(condition) do { if (!(condition)) { misuses++; return INVALID_VALUE; } } while (0)
#define ENTER do { int e = injected(__func__); if (e) return e; } while (0)
static bool isContext(void *c) { return c == &contexts[0] || c == &contexts[1]; }
#define NEEDS_CONTEXT do { if (!isContext(current)) return INVALID_CONTEXT; ENTER; } while (0)

int cuInit(unsigned flags) { ENTER; return flags ? INVALID_VALUE : OK; }
int cuDriverGetVersion(int *v) { *v = 13000; return OK; }
int cuGetErrorName(int e, const char **s) {
    switch (e) {
    case INVALID_VALUE: *s = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case OUT_OF_MEMORY: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case INVALID_DEVICE: *s = "CUDA_ERROR_INVALID_DEVICE"; return OK;
    case INVALID_IMAGE: *s = "CUDA_ERROR_INVALID_IMAGE"; return OK;
    case INVALID_CONTEXT: *s = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case NOT_FOUND: *s = "CUDA_ERROR_NOT_FOUND"; return OK;
    default: return INVALID_VALUE;
    }
}
int cuGetErrorString(int e, const char **s) { *s = "as the stand-in says"; return OK; }
static int devices(void) {
    Dl_info self;
    char path[4096];
    if (!dladdr((void *) cuInit, &self)) return 1;
    snprintf(path, sizeof path, "%s", self.dli_fname);
    char *name = strrchr(path, '/');
    if (!name) return 1;
    strcpy(name, "/pair");
    return access(path, F_OK) ? 1 : 2;
}
int cuDeviceGetCount(int *n) { *n = devices(); return OK; }
int cuDeviceGet(int *d, int ordinal) {
    *d = ordinal;
    return ordinal >= 0 && ordinal < devices() ? OK : INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int n, int d) { snprintf(name, n, "Stand-in"); return OK; }
int cuDeviceGetUuid_v2(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i + d; return OK; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = TOTAL; return OK; }
int cuDeviceGetAttribute(int *v, int attribute, int d) {
    switch (attribute) {
    case 75: *v = 9; return OK;
    case 76: *v = 0; return OK;
    case 102: case 103: case 110: *v = 1; return OK;
    default: return INVALID_VALUE;
    }
}
int cuDeviceCanAccessPeer(int *v, int a, int b) { *v = a != b; return OK; }
int cuDevicePrimaryCtxRetain(void **c, int d) { ENTER; *c = &contexts[d]; return OK; }
int cuCtxSetCurrent(void *c) { current = c; return OK; }
int cuCtxSynchronize(void) { NEEDS_CONTEXT; finish(queued); return OK; }
int cuCtxEnablePeerAccess(void *c, unsigned f) { return 704; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { NEEDS_CONTEXT; *f = TOTAL - used; *t = TOTAL; return OK; }

int cuMemAddressReserve(uintptr_t *p, size_t n, size_t align, uintptr_t hint, uint64_t flags) {
    ENTER;
    REQUIRE(n && n % GRANULARITY == 0 && !align && !hint && !flags);
    void *m = mmap(0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) return OUT_OF_MEMORY;
    *p = (uintptr_t) m;
    live++;
    return OK;
}
int cuMemAddressFree(uintptr_t p, size_t n) {
    ENTER;
    for (int i = 0; i < PIECES; i++)
        REQUIRE(!pieces[i].size || pieces[i].start < p || pieces[i].start >= p + n);
    munmap((void *) p, n);
    live--;
    return OK;
}
static bool valid(const Properties *p) {
    return p->type == 1 && p->handleTypes == 1 && p->location.type == 1 && p->location.id >= 0 && p->location.id < devices()
        && p->metadata == 0 && p->f.compression == 0 && p->f.rdma == 1 && p->f.usage == 0;
}
int cuMemGetAllocationGranularity(size_t *g, const Properties *p, int option) {
    *g = GRANULARITY;
    return valid(p) && option == 0 ? OK : INVALID_VALUE;
}
int cuMemCreate(Memory **h, size_t n, const Properties *p, uint64_t flags) {
    ENTER;
    REQUIRE(valid(p) && !flags && n && n % GRANULARITY == 0);
    if (used + n > TOTAL) return OUT_OF_MEMORY;
    Memory *m = malloc(sizeof *m);
    *m = (Memory) {memfd_create("standin", MFD_CLOEXEC), n, 1};
    if (ftruncate(m->fd, n)) abort();
    used += n;
    live++;
    *h = m;
    return OK;
}
static void drop(Memory *m) {
    if (--m->references) return;
    close(m->fd);
    used -= m->size;
    free(m);
}
int cuMemRelease(Memory *m) { ENTER; live--; drop(m); return OK; }
int cuMemMap(uintptr_t p, size_t n, size_t offset, Memory *m, uint64_t flags) {
    ENTER;
    REQUIRE(!offset && !flags && n && n % GRANULARITY == 0 && p % 4096 == 0);
    if (n > m->size) return INVALID_VALUE; // an importer is told the size by its peer
    int slot = -1;
    for (int i = 0; i < PIECES; i++) {
        if (!pieces[i].size) { slot = i; continue; }
        REQUIRE(pieces[i].start >= p + n || p >= pieces[i].start + pieces[i].size);
    }
    if (slot < 0) return OUT_OF_MEMORY;
    if (mmap((void *) p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, 0) == MAP_FAILED) return OUT_OF_MEMORY;
    m->references++;
    pieces[slot] = (Piece) {p, n, m};
    live++;
    return OK;
}
// Whole pieces side by side, as the driver has it.
int cuMemUnmap(uintptr_t p, size_t n) {
    ENTER;
    size_t found = 0;
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].size && pieces[i].start >= p && pieces[i].start + pieces[i].size <= p + n)
            found += pieces[i].size;
    REQUIRE(n && found == n);
    mmap((void *) p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    for (int i = 0; i < PIECES; i++) {
        if (pieces[i].size && pieces[i].start >= p && pieces[i].start + pieces[i].size <= p + n) {
            drop(pieces[i].memory);
            pieces[i].size = 0;
            live--;
        }
    }
    return OK;
}
int cuMemSetAccess(uintptr_t p, size_t n, const Access *a, size_t count) {
    ENTER;
    if (count != 1 || a->location.type != 1 || a->location.id < 0 || a->location.id >= devices()) return INVALID_VALUE;
    int protection = a->flags == 3 ? PROT_READ | PROT_WRITE : a->flags == 1 ? PROT_READ : -1;
    return protection < 0 || mprotect((void *) p, n, protection) ? INVALID_VALUE : OK;
}
static int pieceAt(uintptr_t p) {
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].size && pieces[i].start <= p && p - pieces[i].start < pieces[i].size) return i;
    return -1;
}
int cuMemRetainAllocationHandle(Memory **h, uintptr_t p) {
    ENTER;
    int i = pieceAt(p);
    if (i < 0) return INVALID_VALUE;
    *h = pieces[i].memory;
    (*h)->references++;
    live++;
    return OK;
}
// Of a piece, and of other memory a page, as the stand-in does not know where that ends.
int cuMemGetAddressRange_v2(uintptr_t *base, size_t *n, uintptr_t p) {
    NEEDS_CONTEXT;
    int i = pieceAt(p);
    *base = i < 0 ? p / 4096 * 4096 : pieces[i].start;
    *n = i < 0 ? 4096 : pieces[i].size;
    return OK;
}
int cuMemExportToShareableHandle(int *fd, Memory *m, int type, uint64_t flags) {
    ENTER;
    if (type != 1 || flags) return INVALID_VALUE;
    *fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
    return OK;
}
static bool isHandle(int fd) {
    char link[64], target[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target);
    return n > 14 && memcmp(target, "/memfd:standin", 14) == 0;
}
int cuMemImportFromShareableHandle(Memory **h, void *fd, int type) {
    ENTER;
    struct stat s;
    REQUIRE(type == 1);
    if (!isHandle((int) (intptr_t) fd) || fstat((int) (intptr_t) fd, &s)) return INVALID_VALUE;
    Memory *m = malloc(sizeof *m);
    *m = (Memory) {fcntl((int) (intptr_t) fd, F_DUPFD_CLOEXEC, 0), s.st_size, 1};
    used += m->size;
    live++;
    *h = m;
    return OK;
}

int cuMemAlloc_v2(void **p, size_t n) { NEEDS_CONTEXT; *p = malloc(n); live++; return OK; }
int cuMemFree_v2(void *p) { NEEDS_CONTEXT; free(p); live--; return OK; }
int cuMemHostAlloc(void **p, size_t n, unsigned f) {
    NEEDS_CONTEXT;
    *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    live++;
    return f == 1 ? OK : INVALID_VALUE;
}
int cuMemFreeHost(void *p) { NEEDS_CONTEXT; free(p); live--; return OK; }
static int copy(void *to, const void *from, size_t n) {
    if (!late) {
        memcpy(to, from, n);
        return OK;
    }
    finish(queued + 1 - COPIES);
    copies[queued++ % COPIES] = (Copy) {to, from, n};
    return OK;
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, void *s) { NEEDS_CONTEXT; return copy(to, from, n); }
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, void *s) { NEEDS_CONTEXT; return copy(to, from, n); }
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, void *s) { NEEDS_CONTEXT; return copy(to, from, n); }
int cuMemcpyPeerAsync(void *to, void *toContext, const void *from, void *fromContext, size_t n, void *s) {
    NEEDS_CONTEXT;
    return isContext(toContext) && isContext(fromContext) ? copy(to, from, n) : INVALID_CONTEXT;
}
int cuMemsetD8Async(void *to, unsigned char v, size_t n, void *s) { NEEDS_CONTEXT; finish(queued); memset(to, v, n); return OK; }

static int create(void **h) { *h = calloc(1, sizeof(long)); live++; return OK; }
static int destroy(void *h) { free(h); live--; return OK; }
int cuStreamCreate(void **s, unsigned f) { NEEDS_CONTEXT; return f == 1 ? create(s) : INVALID_VALUE; }
int cuStreamDestroy_v2(void *s) { ENTER; return destroy(s); }
int cuStreamSynchronize(void *s) { ENTER; finish(queued); return OK; }
int cuStreamQuery(void *s) { ENTER; finish(queued); return OK; }
int cuStreamWaitEvent(void *s, void *e, unsigned f) { ENTER; return f ? INVALID_VALUE : OK; }
int cuEventCreate(void **e, unsigned f) { NEEDS_CONTEXT; return f == 0 || f == 2 ? create(e) : INVALID_VALUE; }
int cuEventDestroy_v2(void *e) { ENTER; return destroy(e); }
// An event is how many copies were queued when it was recorded.
int cuEventRecord(long *e, void *s) { ENTER; *e = queued; return OK; }
int cuEventQuery(long *e) { ENTER; finish(*e); return OK; }
int cuEventSynchronize(long *e) { ENTER; finish(*e); return OK; }
int cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 0.25f; return OK; }

int cuModuleLoadDataEx(void **m, const char *image, unsigned n, int *options, void **values) {
    NEEDS_CONTEXT;
    if (n != 2 || options[0] != 5 || options[1] != 6) return INVALID_VALUE;
    if (memcmp(image, "\x7f" "ELF", 4) != 0) {
        snprintf(values[0], (size_t) values[1], "that is no cubin");
        return INVALID_IMAGE;
    }
    return create(m);
}
int cuModuleUnload(void *m) { ENTER; return destroy(m); }
// A gather: how many bytes it copies at once, and how many its first argument has, the list of blocks.
static struct gather { int width; size_t list; } gathers[] = {
    {16, 512 * 8}, {4, 512 * 8}, {1, 512 * 8}, {16, 4088 * 8}, {4, 4088 * 8}, {1, 4088 * 8}, {0, 0}};
int cuModuleGetFunction(void **f, void *m, const char *name) {
    ENTER;
    int width, places;
    if (sscanf(name, "gather_%d_%d", &width, &places) != 2) return NOT_FOUND;
    struct gather *g = gathers;
    while (g->width && (g->width != width || g->list != places * 8)) g++;
    *f = g;
    return g->width ? OK : NOT_FOUND;
}
int cuFuncGetAttribute(int *v, int attribute, void *f) {
    *v = 1024;
    return attribute == 0 ? OK : INVALID_VALUE;
}
int cuFuncGetParamInfo(struct gather *f, size_t i, size_t *offset, size_t *size) {
    if (i >= 7) return INVALID_VALUE;
    *offset = (size_t[]) {0, f->list, f->list + 4, f->list + 8, f->list + 16, f->list + 24, f->list + 32}[i];
    *size = (size_t[]) {f->list, 4, 4, 4, 8, 8, 8}[i];
    return OK;
}
int cuLaunchKernel(struct gather *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    NEEDS_CONTEXT;
    finish(queued);
    int *sources = parameters[0], *targets = sources + f->list / 8;
    unsigned shift = *(unsigned *) parameters[1], count = *(unsigned *) parameters[2];
    unsigned perBlock = *(unsigned *) parameters[3];
    char *source = *(char **) parameters[4], *target = *(char **) parameters[5];
    size_t bytes = *(size_t *) parameters[6];
    // in a grid of one dimension, whose last block has a piece for its first warp
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || bx % 32 || (size_t) (gx - 1) * (bx / 32) >= count || extra)
        REQUIRE(false);
    REQUIRE(count / perBlock * 8 <= f->list);
    // a block's pieces, of which a warp copies four elements a thread, are as many as it needs
    size_t piece = f->width * 128;
    REQUIRE(count % perBlock == 0 && perBlock * piece >= bytes && (perBlock - 1) * piece < bytes);
    for (unsigned i = 0; i < count / perBlock; i++) {
        char *from = source + ((long) sources[i] << shift), *to = target + ((long) targets[i] << shift);
        REQUIRE(((size_t) from | (size_t) to | bytes) % f->width == 0);
        memcpy(to, from, bytes);
    }
    return OK;
}
