package dev.dormouse.simulation;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.router.routing.Role;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.testkit.ModelFaults;
import dev.dormouse.testkit.ModelTransport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Everything that goes wrong around engines, and its end. */
final class Faults {
    /** Of a message, and of a transfer. */
    static final Duration LONGEST_DELAY = Duration.ofSeconds(25);

    /** Until a mapping is given up, if nothing goes wrong. */
    static final Duration REVOCATION = Duration.ofMillis(3);

    private static final int KINDS = 23;
    private static final int TRANSFER_FAULTS = 4;

    private final World world;
    private final SplittableRandom random;
    private boolean stripsEpoch;
    private boolean stripsInstance;
    private boolean stripsLease;
    private boolean falsifies;

    Faults(World world, SplittableRandom random) {
        this.world = world;
        this.random = random;
    }

    /** Lets one thing go wrong. */
    void inject() {
        int kind = random.nextInt(KINDS);
        List<Place> places = kind < TRANSFER_FAULTS ? movers() : world.places();
        Place place = places.get(random.nextInt(places.size()));
        EngineProcess process = place.process();
        if (process == null) {
            place.start();
            return;
        }
        int rank = random.nextInt(process.transports().size());
        ModelTransport transport = process.transports().get(rank);
        String what =
                switch (kind) {
                    case 0, 1, 2, 3 -> plan(transport.faults());
                    case 4 -> die(place, random.nextInt(4) > 0);
                    case 5 -> {
                        world.network().refuse(1 + random.nextInt(4));
                        yield "handshakes are refused";
                    }
                    case 6 -> {
                        world.network().setSlow(random.nextInt(3) == 0);
                        yield "side channels change their pace";
                    }
                    case 7 -> {
                        process.memory(rank).failWakes(1);
                        yield "memory is short";
                    }
                    case 8 -> {
                        process.memory(rank).failSleeps(1);
                        yield "pages do not go";
                    }
                    case 9 -> {
                        transport.disconnectPeers();
                        yield "peers are disconnected";
                    }
                    case 10, 11, 12, 13, 14 -> messages(transport.faults());
                    case 15, 16 -> revocation(transport.faults());
                    default -> refusal(transport.faults());
                };
        world.log().add("fault at " + process + " rank " + rank + ": " + what);
    }

    private String messages(ModelFaults faults) {
        return switch (random.nextInt(5)) {
            case 0 -> {
                faults.failNotifies(1 + random.nextInt(2));
                yield "messages are not sent";
            }
            case 1 -> {
                faults.setMessageDelay(delay());
                yield "messages come late";
            }
            case 2 -> {
                faults.loseMessages(1 + random.nextInt(3));
                yield "messages are lost";
            }
            case 3 -> {
                faults.setNewestFirst(random.nextBoolean());
                yield "messages change their order";
            }
            default -> {
                faults.setReadDelay(delay());
                yield "transfers are slow";
            }
        };
    }

    private String revocation(ModelFaults faults) {
        boolean hangs = random.nextInt(3) == 0;
        faults.setHangs(hangs);
        faults.setRevocationDelay(delay());
        return hangs ? "mappings are kept" : "mappings are given up at another pace";
    }

    private String refusal(ModelFaults faults) {
        return switch (random.nextInt(6)) {
            case 0 -> {
                faults.failRegistrations(1);
                yield "a registration fails";
            }
            case 1 -> {
                faults.failDeregistrations(1);
                yield "a deregistration fails";
            }
            case 2 -> {
                faults.failLoads(1);
                yield "a load fails";
            }
            case 3 -> {
                faults.failPreparations(1);
                yield "a preparation fails";
            }
            case 4 -> {
                faults.failListCloses(1);
                yield "a list stays open";
            }
            default -> {
                faults.failPeerCloses(1);
                yield "a peer stays loaded";
            }
        };
    }

    /** What becomes of parameters on the way: chooses anew, for some time. */
    void changeRouter() {
        stripsEpoch = random.nextInt(3) == 0;
        stripsInstance = random.nextInt(3) == 0;
        stripsLease = random.nextInt(5) == 0;
        falsifies = random.nextInt(6) == 0;
    }

    KvTransferParams onTheWay(KvTransferParams params) {
        ObjectNode json = params.toJson();
        if (stripsEpoch) {
            json.remove(List.of("remote_registration_epoch", "remote_registration_generation"));
        }
        if (stripsInstance) {
            json.remove("remote_instance_id");
        }
        if (stripsLease) {
            json.remove(List.of("remote_lease_deadline", "remote_lease_seconds"));
        }
        if (falsifies) {
            falsify(json);
        }
        return KvTransferParams.of(json);
    }

    /** Claims that can be seen through; of a block id in range nobody can tell that it is wrong. */
    private void falsify(ObjectNode json) {
        long epoch = json.path("remote_registration_epoch").asLong();
        switch (random.nextInt(6)) {
            case 0 -> json.put("remote_registration_epoch", epoch + 1 + random.nextInt(3));
            case 1 -> {
                json.put("remote_registration_epoch", Math.max(1, epoch - 1));
                json.put("remote_registration_generation", Math.max(1, epoch - 1));
            }
            case 2 -> json.put("remote_instance_id", "somebody else");
            case 3 -> json.putArray("remote_block_ids").addArray().add(1_000_000);
            case 4 -> json.put("remote_num_tokens", 1_000);
            default -> json.put("remote_port", 5_600 + random.nextInt(5));
        }
    }

    /** From now on nothing goes wrong, and what was stuck ends. */
    void heal() {
        stripsEpoch = false;
        stripsInstance = false;
        stripsLease = false;
        falsifies = false;
        world.network().refuse(0);
        world.network().setSlow(false);
        for (Place place : world.places()) {
            EngineProcess process = place.process();
            if (process == null) {
                continue;
            }
            for (int rank = 0; rank < process.transports().size(); rank++) {
                process.memory(rank).failWakes(0);
                process.memory(rank).failSleeps(0);
                heal(process.transports().get(rank));
            }
        }
    }

    private static void heal(ModelTransport transport) {
        ModelFaults faults = transport.faults();
        faults.forgetPlans();
        faults.failRegistrations(0);
        faults.failDeregistrations(0);
        faults.failLoads(0);
        faults.failPreparations(0);
        faults.failListCloses(0);
        faults.failPeerCloses(0);
        faults.failNotifies(0);
        faults.loseMessages(0);
        faults.setNewestFirst(false);
        faults.setMessageDelay(Duration.ZERO);
        faults.setReadDelay(Duration.ZERO);
        faults.setHangs(false);
        faults.setRevocationDelay(REVOCATION);
        transport.failStuckReads();
    }

    private String die(Place place, boolean kill) {
        place.stop(kill);
        world.agenda().after(Duration.ofMillis(random.nextInt(5_000)), place::start);
        return kill ? "killed" : "closed";
    }

    /** Engines that move data: readers, or holders that write to readers. */
    private List<Place> movers() {
        EngineSpec any = world.places().getFirst().spec();
        return any.readBack() != null
                ? world.places()
                : world.places(any.push() ? Role.PREFILL : Role.DECODE);
    }

    private String plan(ModelFaults faults) {
        List<ModelFault> kinds = new ArrayList<>();
        kinds.add(new ModelFault.FailPost());
        kinds.add(new ModelFault.ThrowOnPoll());
        kinds.add(new ModelFault.FailHalfWay());
        kinds.add(new ModelFault.NeverComplete());
        kinds.add(new ModelFault.FailAndRefuseRelease(1 + random.nextInt(5)));
        kinds.add(new ModelFault.FailAndRefuseRelease(1 + random.nextInt(50)));
        ModelFault fault = kinds.get(random.nextInt(kinds.size()));
        faults.planRead(fault);
        return "the next transfer meets " + fault;
    }

    private Duration delay() {
        return switch (random.nextInt(4)) {
            case 0 -> Duration.ZERO;
            case 1, 2 -> Duration.ofMillis(random.nextInt(50));
            default -> Duration.ofMillis(random.nextInt((int) LONGEST_DELAY.toMillis()));
        };
    }
}
