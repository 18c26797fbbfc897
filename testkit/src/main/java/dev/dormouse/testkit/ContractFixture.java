package dev.dormouse.testkit;

import dev.dormouse.transport.MemoryKind;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** An owner and a reader for each test of a contract. */
abstract class ContractFixture {
    private final List<ContractNode> nodes = new ArrayList<>();
    ContractPair pair;
    ContractNode owner;
    ContractNode reader;

    /** Starts an agent whose name nobody has used. */
    protected abstract ContractNode open();

    /** Where the nodes' memory lies. */
    protected MemoryKind memoryKind() {
        return MemoryKind.DRAM;
    }

    @BeforeEach
    void openOwnerAndReader() {
        owner = track(open());
        reader = track(open());
        pair = new ContractPair(owner, reader, memoryKind());
    }

    @AfterEach
    void closeAll() {
        nodes.reversed().forEach(ContractNode::close);
        nodes.clear();
    }

    /** The node is closed after the test. */
    ContractNode track(ContractNode node) {
        nodes.add(node);
        return node;
    }
}
