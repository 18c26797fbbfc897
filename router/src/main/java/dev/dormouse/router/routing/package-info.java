/**
 * What the router decides, without HTTP, threads, clocks or metrics: which engine gets a request
 * next, with what body, and what becomes of an answer or a failure. The router carries it out over
 * HTTP, the simulation over messages of its own.
 *
 * <p>Entry point: {@link dev.dormouse.router.routing.Routing}, one per request.
 */
@NullMarked
package dev.dormouse.router.routing;

import org.jspecify.annotations.NullMarked;
