/**
 * A fleet under mixed requests, clients that leave, and sleeps, judged when it is at rest again.
 */
@NullMarked
package dev.dormouse.cli.soak;

import org.jspecify.annotations.NullMarked;
