/** The KV transport over NVIDIA NIXL. */
@NullMarked
package dev.dormouse.transport.nixl;

import org.jspecify.annotations.NullMarked;
