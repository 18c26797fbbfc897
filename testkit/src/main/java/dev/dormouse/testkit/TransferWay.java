package dev.dormouse.testkit;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.Transfer;

/** Which way blocks go, seen from the agent that starts the transfer. */
enum TransferWay {
    READ {
        @Override
        Transfer start(
                KvTransport transport, BlockList local, int[] here, BlockList remote, int[] there) {
            return transport.read(local, here, remote, there, ContractPair.DONE);
        }
    },
    WRITE {
        @Override
        Transfer start(
                KvTransport transport, BlockList local, int[] here, BlockList remote, int[] there) {
            return transport.write(local, here, remote, there, ContractPair.DONE);
        }
    };

    abstract Transfer start(
            KvTransport transport, BlockList local, int[] here, BlockList remote, int[] there);
}
