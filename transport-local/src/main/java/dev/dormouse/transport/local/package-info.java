/** The KV transport between processes of one host, which map each other's pages. */
@NullMarked
package dev.dormouse.transport.local;

import org.jspecify.annotations.NullMarked;
