/**
 * The only place that links native code: library search, downcall handles, errno, and the libc
 * calls the product needs.
 */
@NullMarked
package dev.dormouse.foreign;

import org.jspecify.annotations.NullMarked;
