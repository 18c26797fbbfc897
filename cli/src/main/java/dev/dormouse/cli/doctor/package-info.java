/** {@code dormouse doctor}: what this machine has of what Dormouse needs. */
@NullMarked
package dev.dormouse.cli.doctor;

import org.jspecify.annotations.NullMarked;
