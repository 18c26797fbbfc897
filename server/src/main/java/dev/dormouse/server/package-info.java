/** The OpenAI compatible HTTP surface of one engine. */
@NullMarked
package dev.dormouse.server;

import org.jspecify.annotations.NullMarked;
