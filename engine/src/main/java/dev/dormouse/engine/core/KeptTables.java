package dev.dormouse.engine.core;

import dev.dormouse.engine.kv.BlockTable;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Block tables that stay after their sequence ended, in the order in which they came. */
final class KeptTables {
    private final Map<String, BlockTable> tables = new LinkedHashMap<>();

    /** How many of the tables have a block: those of one prefix share some. */
    private final int[] uses;

    private int blocks;

    /** None, of a cache of so many blocks. */
    KeptTables(int cacheBlocks) {
        this.uses = new int[cacheBlocks];
    }

    /** By request; not to be changed. */
    Map<String, BlockTable> byRequest() {
        return tables;
    }

    boolean isEmpty() {
        return tables.isEmpty();
    }

    /** How many blocks are in the tables; one that several have counts once. */
    int blocks() {
        return blocks;
    }

    void put(String requestId, BlockTable table) {
        tables.put(requestId, table);
        for (int i = 0; i < table.size(); i++) {
            if (uses[table.block(i)]++ == 0) {
                blocks++;
            }
        }
    }

    @Nullable BlockTable remove(String requestId) {
        @Nullable BlockTable table = tables.remove(requestId);
        for (int i = 0; table != null && i < table.size(); i++) {
            if (--uses[table.block(i)] == 0) {
                blocks--;
            }
        }
        return table;
    }
}
