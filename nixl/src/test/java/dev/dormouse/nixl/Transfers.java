package dev.dormouse.nixl;

import dev.dormouse.testkit.Await;
import java.util.stream.IntStream;

/** Steps that many tests take. */
final class Transfers {
    private Transfers() {}

    /** Posts, waits for the end and releases. */
    static TransferState run(Transfer transfer) {
        transfer.post();
        TransferState end = await(transfer);
        transfer.close();
        return end;
    }

    static TransferState await(Transfer transfer) {
        Await.until("end of " + transfer, () -> transfer.state().isTerminal());
        return transfer.state();
    }

    static int[] range(int count) {
        return IntStream.range(0, count).toArray();
    }
}
