package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.PaddingLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The layouts and numbers in Java against {@code cuda.h} and {@code nvml.h}, by the C compiler:
 * those of {@code /usr/local/cuda/include} or the folders in {@code DORMOUSE_CUDA_INCLUDE}
 * (separated by colons), and where there are none, against copies of their definitions.
 */
class StructLayoutTest {
    private static final String PROGRAM =
            """
            #include <stddef.h>
            #include <stdio.h>
            #if __has_include(<cuda.h>)
            #include <cuda.h>
            #else
            typedef enum { CU_MEM_LOCATION_TYPE_DEVICE = 0x1 } CUmemLocationType;
            typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 0x1 } CUmemAllocationType;
            typedef enum {
                CU_MEM_HANDLE_TYPE_NONE = 0x0,
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 0x1
            } CUmemAllocationHandleType;
            typedef enum {
                CU_MEM_ACCESS_FLAGS_PROT_READ = 0x1,
                CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 0x3
            } CUmemAccess_flags;
            typedef struct { CUmemLocationType type; int id; } CUmemLocation;
            typedef struct {
                CUmemAllocationType type;
                CUmemAllocationHandleType requestedHandleTypes;
                CUmemLocation location;
                void *win32HandleMetaData;
                struct {
                    unsigned char compressionType;
                    unsigned char gpuDirectRDMACapable;
                    unsigned short usage;
                    unsigned char reserved[4];
                } allocFlags;
            } CUmemAllocationProp;
            typedef struct { CUmemLocation location; CUmemAccess_flags flags; } CUmemAccessDesc;
            enum {
                CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
                CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
                CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
                CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
                CUDA_ERROR_INVALID_VALUE = 1,
                CUDA_ERROR_NOT_READY = 600,
                CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
            };
            #endif
            #if __has_include(<nvml.h>)
            #include <nvml.h>
            #else
            typedef struct {
                unsigned int version;
                unsigned long long total, reserved, free, used;
            } nvmlMemory_v2_t;
            #define nvmlMemory_v2 (unsigned int) (sizeof(nvmlMemory_v2_t) | (2 << 24U))
            typedef struct {
                unsigned int pid;
                unsigned long long usedGpuMemory;
                unsigned int gpuInstanceId;
                unsigned int computeInstanceId;
            } nvmlProcessInfo_t;
            #define NVML_NVLINK_MAX_LINKS 18
            enum {
                NVML_ERROR_INVALID_ARGUMENT = 2,
                NVML_ERROR_NOT_SUPPORTED = 3,
                NVML_ERROR_NO_PERMISSION = 4,
                NVML_ERROR_INSUFFICIENT_SIZE = 7,
                NVML_FEATURE_ENABLED = 1
            };
            #endif
            #define S(t) printf(#t "=%zu\\n", sizeof(t))
            #define O(t, f) printf(#t "." #f "=%zu\\n", offsetof(t, f))
            #define N(n) printf(#n "=%u\\n", (unsigned) (n))
            int main(void) {
                S(CUmemLocation);
                O(CUmemLocation, type);
                O(CUmemLocation, id);
                S(CUmemAccessDesc);
                O(CUmemAccessDesc, location);
                O(CUmemAccessDesc, flags);
                S(CUmemAllocationProp);
                O(CUmemAllocationProp, type);
                O(CUmemAllocationProp, requestedHandleTypes);
                O(CUmemAllocationProp, location);
                O(CUmemAllocationProp, win32HandleMetaData);
                O(CUmemAllocationProp, allocFlags);
                O(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
                S(nvmlMemory_v2_t);
                O(nvmlMemory_v2_t, version);
                O(nvmlMemory_v2_t, total);
                O(nvmlMemory_v2_t, reserved);
                O(nvmlMemory_v2_t, free);
                O(nvmlMemory_v2_t, used);
                S(nvmlProcessInfo_t);
                O(nvmlProcessInfo_t, pid);
                O(nvmlProcessInfo_t, usedGpuMemory);
                O(nvmlProcessInfo_t, gpuInstanceId);
                O(nvmlProcessInfo_t, computeInstanceId);
                N(CU_MEM_ALLOCATION_TYPE_PINNED);
                N(CU_MEM_LOCATION_TYPE_DEVICE);
                N(CU_MEM_HANDLE_TYPE_NONE);
                N(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
                N(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
                N(CU_MEM_ACCESS_FLAGS_PROT_READ);
                N(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
                N(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
                N(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
                N(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
                N(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
                N(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
                N(CUDA_ERROR_INVALID_VALUE);
                N(CUDA_ERROR_NOT_READY);
                N(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
                N(nvmlMemory_v2);
                N(NVML_NVLINK_MAX_LINKS);
                N(NVML_ERROR_INVALID_ARGUMENT);
                N(NVML_ERROR_NOT_SUPPORTED);
                N(NVML_ERROR_NO_PERMISSION);
                N(NVML_ERROR_INSUFFICIENT_SIZE);
                N(NVML_FEATURE_ENABLED);
            }
            """;

    @Test
    void layoutsAndNumbersAgreeWithTheHeaders(@TempDir Path folder)
            throws IOException, InterruptedException {
        Path source = folder.resolve("layout.c");
        Path binary = folder.resolve("layout");
        Files.writeString(source, PROGRAM);
        List<String> command = new ArrayList<>(List.of("cc", "-w", "-o", binary.toString()));
        String include = System.getenv("DORMOUSE_CUDA_INCLUDE");
        for (String headers :
                (include == null ? "/usr/local/cuda/include" : include).split(":", -1)) {
            command.add("-I" + headers);
        }
        command.add(source.toString());
        Assumptions.assumeTrue(compiles(command), "no C compiler");

        Process process = new ProcessBuilder(binary.toString()).start();
        String printed =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(layouts() + numbers()).isEqualTo(printed);
    }

    private static String layouts() {
        PathElement rdma = PathElement.groupElement("gpuDirectRDMACapable");
        return describe("CUmemLocation", MemoryLayouts.LOCATION)
                + describe("CUmemAccessDesc", MemoryLayouts.ACCESS)
                + describe("CUmemAllocationProp", MemoryLayouts.ALLOCATION)
                + "CUmemAllocationProp.allocFlags.gpuDirectRDMACapable="
                + MemoryLayouts.ALLOCATION.byteOffset(PathElement.groupElement("allocFlags"), rdma)
                + "\n"
                + describe("nvmlMemory_v2_t", NvmlApi.MEMORY)
                + describe("nvmlProcessInfo_t", NvmlApi.PROCESS);
    }

    private static String numbers() {
        StringBuilder text = new StringBuilder();
        add(text, "CU_MEM_ALLOCATION_TYPE_PINNED", MemoryLayouts.ALLOCATION_TYPE_PINNED);
        add(text, "CU_MEM_LOCATION_TYPE_DEVICE", MemoryLayouts.LOCATION_TYPE_DEVICE);
        add(text, "CU_MEM_HANDLE_TYPE_NONE", MemoryLayouts.HANDLE_TYPE_NONE);
        add(
                text,
                "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
                MemoryLayouts.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        add(text, "CU_MEM_ALLOC_GRANULARITY_MINIMUM", MemoryLayouts.GRANULARITY_MINIMUM);
        add(text, "CU_MEM_ACCESS_FLAGS_PROT_READ", MemoryAccess.READ.flags);
        add(text, "CU_MEM_ACCESS_FLAGS_PROT_READWRITE", MemoryAccess.READ_WRITE.flags);
        for (DeviceAttribute attribute : DeviceAttribute.values()) {
            add(text, "CU_DEVICE_ATTRIBUTE_" + attribute, attribute.code);
        }
        add(text, "CUDA_ERROR_INVALID_VALUE", CudaApi.ERROR_INVALID_VALUE);
        add(text, "CUDA_ERROR_NOT_READY", CudaApi.ERROR_NOT_READY);
        add(
                text,
                "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
                CudaApi.ERROR_PEER_ACCESS_ALREADY_ENABLED);
        add(text, "nvmlMemory_v2", NvmlApi.MEMORY_VERSION);
        add(text, "NVML_NVLINK_MAX_LINKS", NvmlApi.MAX_LINKS);
        add(text, "NVML_ERROR_INVALID_ARGUMENT", NvmlApi.ERROR_INVALID_ARGUMENT);
        add(text, "NVML_ERROR_NOT_SUPPORTED", NvmlApi.ERROR_NOT_SUPPORTED);
        add(text, "NVML_ERROR_NO_PERMISSION", NvmlApi.ERROR_NO_PERMISSION);
        add(text, "NVML_ERROR_INSUFFICIENT_SIZE", NvmlApi.ERROR_INSUFFICIENT_SIZE);
        add(text, "NVML_FEATURE_ENABLED", NvmlApi.FEATURE_ENABLED);
        return text.toString();
    }

    private static void add(StringBuilder text, String name, long value) {
        text.append(name).append('=').append(value).append('\n');
    }

    private static boolean compiles(List<String> command) throws InterruptedException {
        try {
            return new ProcessBuilder(command).inheritIO().start().waitFor() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    private static String describe(String name, GroupLayout layout) {
        StringBuilder text = new StringBuilder();
        add(text, name, layout.byteSize());
        long offset = 0;
        for (MemoryLayout member : layout.memberLayouts()) {
            if (!(member instanceof PaddingLayout)) {
                add(text, name + "." + member.name().orElseThrow(), offset);
            }
            offset += member.byteSize();
        }
        return text.toString();
    }
}
