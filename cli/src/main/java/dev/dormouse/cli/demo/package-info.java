/**
 * The demonstration: prefill engine, decode engine and router as separate processes, put to sleep
 * and woken in every way, and compared token by token with an engine that never slept.
 */
@NullMarked
package dev.dormouse.cli.demo;

import org.jspecify.annotations.NullMarked;
