package dev.dormouse.cuda;

import java.util.OptionalLong;

/**
 * A process with a context on a device.
 *
 * @param pid as the machine's own process table has it, which may be another than in a container
 * @param usedBytes its share of the device's memory, empty where the driver does not tell
 */
public record NvmlProcess(long pid, OptionalLong usedBytes) {}
