package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.ReleaseResult;
import dev.dormouse.nixl.TransferOperation;
import dev.dormouse.nixl.TransferTelemetry;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.util.Set;

/** A posted transfer of NIXL's. */
final class NixlTransfer implements Transfer {
    private final TransferOperation operation;
    private final dev.dormouse.nixl.Transfer transfer;
    private final Set<NixlTransfer> unreleased;

    /** Enters itself into {@code unreleased} until it is released. */
    NixlTransfer(
            TransferOperation operation,
            dev.dormouse.nixl.Transfer transfer,
            Set<NixlTransfer> unreleased) {
        this.operation = operation;
        this.transfer = transfer;
        this.unreleased = unreleased;
        unreleased.add(this);
    }

    /** Whether the peer may still be busy with it. */
    boolean isUnderWay() {
        return transfer.isOpen()
                && transfer.state() instanceof dev.dormouse.nixl.TransferState.InProgress;
    }

    @Override
    public TransferState poll() {
        return NixlTransport.translated(
                () ->
                        switch (transfer.state()) {
                            case dev.dormouse.nixl.TransferState.Done ignored -> done();
                            case dev.dormouse.nixl.TransferState.InProgress ignored ->
                                    new TransferState.InProgress();
                            case dev.dormouse.nixl.TransferState.Failed failed ->
                                    new TransferState.Failed(
                                            operation
                                                    + " with "
                                                    + transfer.peer().name()
                                                    + " failed: "
                                                    + failed.status());
                        });
    }

    private TransferState.Done done() {
        TransferTelemetry telemetry = transfer.telemetry().orElseThrow();
        return new TransferState.Done(
                telemetry.transferDuration(),
                telemetry.postDuration(),
                telemetry.totalBytes(),
                telemetry.descriptorCount());
    }

    @Override
    public boolean release() {
        boolean released = NixlTransport.translated(transfer::release) == ReleaseResult.RELEASED;
        if (released) {
            unreleased.remove(this);
        }
        return released;
    }
}
