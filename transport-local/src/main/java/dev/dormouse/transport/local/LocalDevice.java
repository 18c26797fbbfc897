package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.KernelCache;

/**
 * The GPU of an agent, to whose memory and from whose memory it copies.
 *
 * @param context stays the caller's; to be closed after the agent
 * @param kernels where the compiled kernel is kept
 */
public record LocalDevice(CudaContext context, KernelCache kernels) {}
