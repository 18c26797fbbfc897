/**
 * The prefill/decode router: an HTTP proxy that asks a prefill engine for a prompt's KV and a
 * decode engine for the answer.
 *
 * <p>Entry point: {@link dev.dormouse.router.Router}. A request runs on the virtual thread of its
 * client's connection, from {@code FrontDoor} and {@code EngineRequests} through {@code
 * RoutingDriver}, which carries out what {@link dev.dormouse.router.routing.Routing} decides, and
 * {@code UpstreamCall} (one exchange) to {@code ResponseRelay}.
 */
@NullMarked
package dev.dormouse.router;

import org.jspecify.annotations.NullMarked;
