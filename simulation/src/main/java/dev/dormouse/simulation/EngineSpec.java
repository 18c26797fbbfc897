package dev.dormouse.simulation;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ReadBack;
import dev.dormouse.connector.SideChannelAddress;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.router.routing.Role;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * An engine as it is started, again after each death.
 *
 * @param name its engine id
 * @param role what the router sends to it
 * @param readBack how it takes part in next turns, or null
 * @param push whether holders write to readers, instead of being read from
 * @param address of its side channel
 * @param kvHeads of the model
 * @param ranks tensor parallel size
 * @param engine the engine's settings
 * @param lease how long it holds unread prompts
 * @param timeToLive how long an unused peer stays loaded; zero for ever
 * @param clockAhead what its machine's nano clock is ahead of the world's
 */
record EngineSpec(
        String name,
        Role role,
        @Nullable ReadBack readBack,
        boolean push,
        SideChannelAddress address,
        int kvHeads,
        int ranks,
        EngineConfig engine,
        Duration lease,
        Duration timeToLive,
        Duration clockAhead) {
    private static final Duration HANDSHAKE_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration READ_TIMEOUT = Duration.ofSeconds(30);

    /** The connector's settings for one start. */
    ConnectorConfig.Builder connector(int start) {
        CompatibilityFactors factors =
                CompatibilityFactors.of(
                        "chain",
                        "torch.float16",
                        kvHeads,
                        ChainModel.HEAD_DIMENSION,
                        ChainModel.LAYERS);
        return ConnectorConfig.builder(push ? factors.pushed() : factors, engine.blockTokens())
                .engineId(name)
                .instanceId(name + "-start-" + start)
                .bindHost(address.host())
                .advertisedHost(address.host())
                .sideChannelPort(address.port())
                .tpSize(ranks)
                .readBack(readBack)
                .leaseDuration(lease)
                .handshakeTimeout(HANDSHAKE_TIMEOUT)
                .readTimeout(READ_TIMEOUT)
                .engineTtl(timeToLive);
    }
}
