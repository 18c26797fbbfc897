/** Engines and a router as processes of their own, for commands that need a whole deployment. */
@NullMarked
package dev.dormouse.cli.fleet;

import org.jspecify.annotations.NullMarked;
