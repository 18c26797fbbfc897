package dev.dormouse.cuda;

/**
 * What the driver says of a device's memory at one moment.
 *
 * @param freeBytes what this process could still get
 * @param totalBytes all of it
 */
public record DeviceMemoryInfo(long freeBytes, long totalBytes) {}
