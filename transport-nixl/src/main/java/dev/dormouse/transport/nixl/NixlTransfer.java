package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.ReleaseResult;
import dev.dormouse.nixl.TransferOperation;
import dev.dormouse.nixl.TransferTelemetry;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;

/** A posted transfer of NIXL's. */
final class NixlTransfer implements Transfer {
    private final TransferOperation operation;
    private final dev.dormouse.nixl.Transfer transfer;

    NixlTransfer(TransferOperation operation, dev.dormouse.nixl.Transfer transfer) {
        this.operation = operation;
        this.transfer = transfer;
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
        return NixlTransport.translated(transfer::release) == ReleaseResult.RELEASED;
    }
}
