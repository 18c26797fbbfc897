package dev.dormouse.nixl;

/**
 * Memory that an agent has registered as one: NIXL moves no block that reaches beyond it.
 *
 * @param address in its owner's address space
 * @param deviceId as registered, see {@link MemoryRange#deviceId()}
 */
public record RegisteredRange(long address, long lengthBytes, long deviceId) {}
