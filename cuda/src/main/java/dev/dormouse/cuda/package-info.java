/**
 * NVIDIA GPUs from Java: the CUDA driver (contexts, virtual memory, streams, modules, launches),
 * NVRTC (kernels from source, with a cache) and NVML (memory in use, NVLink).
 */
@NullMarked
package dev.dormouse.cuda;

import org.jspecify.annotations.NullMarked;
