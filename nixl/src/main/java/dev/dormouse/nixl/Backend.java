package dev.dormouse.nixl;

/**
 * A plugin at work in an agent. It lives as long as the agent.
 *
 * @param plugin the plugin's name, as {@code UCX}
 * @param options parameters in force, and the kinds of memory served
 */
public record Backend(String plugin, BackendOptions options) {}
