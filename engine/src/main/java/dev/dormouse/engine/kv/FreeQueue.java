package dev.dormouse.engine.kv;

/**
 * Blocks that no sequence uses, the longest unused first. A doubly linked list over block numbers,
 * so that a block which is found in the prefix cache leaves from the middle in constant time.
 */
final class FreeQueue {
    private final int[] next;
    private final int[] previous;
    private final int sentinel;
    private int size;

    FreeQueue(int blocks) {
        sentinel = blocks;
        next = new int[blocks + 1];
        previous = new int[blocks + 1];
        next[sentinel] = sentinel;
        previous[sentinel] = sentinel;
        for (int block = 0; block < blocks; block++) {
            addLast(block);
        }
    }

    int size() {
        return size;
    }

    void addLast(int block) {
        int last = previous[sentinel];
        next[last] = block;
        previous[block] = last;
        next[block] = sentinel;
        previous[sentinel] = block;
        size++;
    }

    int removeFirst() {
        int first = next[sentinel];
        if (first == sentinel) {
            throw new IllegalStateException("no free KV block");
        }
        remove(first);
        return first;
    }

    void remove(int block) {
        next[previous[block]] = next[block];
        previous[next[block]] = previous[block];
        size--;
    }
}
