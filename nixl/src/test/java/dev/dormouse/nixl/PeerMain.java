package dev.dormouse.nixl;

import dev.dormouse.testkit.ParentLink;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The other process: an agent with one region of memory, driven by lines on standard input and
 * answering each with one line on standard output.
 */
final class PeerMain {
    static final int REGION_BYTES = 1 << 20;

    private final NixlAgent agent;
    private final Region region;

    private PeerMain(String name) {
        agent = NixlAgent.create(NixlAgentConfig.builder(name).build());
        agent.createBackend("UCX", Map.of());
        region = new Region(agent, REGION_BYTES);
    }

    /** Takes the agent's name. */
    public static void main(String[] args) {
        ParentLink parent = ParentLink.open();
        List<UcxEnvironment.Setting> applied =
                UcxEnvironment.applyDefaults(
                        List.of(
                                new UcxEnvironment.Setting("UCX_RCACHE_ENABLE", "n"),
                                new UcxEnvironment.Setting("UCX_LOG_LEVEL", "error")));
        PeerMain peer = new PeerMain(args[0]);
        parent.answer("ready " + applied);
        for (String line = parent.take(); line != null; line = parent.take()) {
            parent.answer(peer.answer(line.split(" ")));
        }
        peer.region.close();
        peer.agent.close();
    }

    private String answer(String[] words) {
        return switch (words[0]) {
            case "address" -> Long.toString(region.memory.address());
            case "fill" -> {
                Pattern.fill(region.memory, Long.parseLong(words[1]));
                yield "ok";
            }
            case "mismatch" ->
                    Long.toString(Pattern.mismatch(region.memory, Long.parseLong(words[1]), 0));
            case "metadata" -> Base64.getEncoder().encodeToString(agent.localMetadata());
            case "partial" ->
                    Base64.getEncoder()
                            .encodeToString(agent.partialMetadata(List.of(region.registration())));
            case "replace" -> {
                region.replacePages(Long.parseLong(words[1]));
                yield "ok";
            }
            case "load" -> agent.load(Base64.getDecoder().decode(words[1])).name();
            case "drop" -> {
                agent.remote(words[1]).orElseThrow().close();
                yield "ok";
            }
            case "notify" -> {
                byte[] message = words[2].getBytes(StandardCharsets.UTF_8);
                agent.remote(words[1]).orElseThrow().notify(message);
                yield "ok";
            }
            case "drain" ->
                    agent.drainNotifications().stream()
                            .map(n -> n.agent() + ":" + n.text())
                            .collect(Collectors.joining(",", "[", "]"));
            case "descriptors" -> Long.toString(Descriptors.open());
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        };
    }
}
