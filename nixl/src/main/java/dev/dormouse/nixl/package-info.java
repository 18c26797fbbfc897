/**
 * NVIDIA NIXL for Java: agents, registrations, metadata, prepared lists, transfers and
 * notifications.
 */
@NullMarked
package dev.dormouse.nixl;

import org.jspecify.annotations.NullMarked;
