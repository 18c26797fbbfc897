/**
 * The KV connector: how one engine's KV blocks reach another, and stay right when either sleeps.
 */
@NullMarked
package dev.dormouse.connector;

import org.jspecify.annotations.NullMarked;
