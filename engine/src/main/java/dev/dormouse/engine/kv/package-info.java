/**
 * Which KV block belongs to whom, and which blocks hold a known prefix. Used by the engine's thread
 * alone.
 */
@NullMarked
package dev.dormouse.engine.kv;

import org.jspecify.annotations.NullMarked;
