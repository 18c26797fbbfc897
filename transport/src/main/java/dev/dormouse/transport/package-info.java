/** What a KV connector asks of a transport. */
@NullMarked
package dev.dormouse.transport;

import org.jspecify.annotations.NullMarked;
