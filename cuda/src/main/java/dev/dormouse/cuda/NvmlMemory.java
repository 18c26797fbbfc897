package dev.dormouse.cuda;

/**
 * A device's memory, counted over all processes.
 *
 * @param totalBytes all of it
 * @param reservedBytes what driver and firmware keep
 * @param freeBytes what nobody has
 * @param usedBytes what processes have
 */
public record NvmlMemory(long totalBytes, long reservedBytes, long freeBytes, long usedBytes) {}
