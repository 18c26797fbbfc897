package dev.dormouse.foreign;

/**
 * Who has connected a Unix socket, or listens on it, as the kernel noted it then ({@code struct
 * ucred}), in terms of this process's namespaces.
 *
 * @param pid 0 if this process cannot see the other
 * @param uid its effective user
 * @param gid its effective group
 */
public record PeerCredentials(int pid, int uid, int gid) {}
