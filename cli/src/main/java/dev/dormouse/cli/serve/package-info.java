/** {@code dormouse serve}: where model, engine, connector, transport and HTTP server meet. */
@NullMarked
package dev.dormouse.cli.serve;

import org.jspecify.annotations.NullMarked;
