"""NIXL's half: a reader prints GB/s as JSON, by variant. It starts the owner that it reads from.

The first variant has the settings of Dormouse's agents (``NixlTransport``, ``UcxSleepDefaults``).
"""

import ctypes
import json
import mmap
import random
import subprocess
import sys
import threading
import time
import uuid

import numpy
from nixl_cu12 import _bindings, nixl_agent, nixl_agent_config

VARIANTS = {"same settings": True, "no progress thread": False}
PROGRESS_DELAY_US = 10_000
UCX = {"engine_config": "RCACHE_ENABLE=n,TLS=^cuda_ipc"}
WARM_UPS = 3


def make_agent(progress_thread):
    """An agent of Dormouse's settings. The Python API has no parameter for the thread's delay."""
    make = _bindings.nixlAgent

    def with_delay(name, config):
        config.pthrDelay = PROGRESS_DELAY_US
        return make(name, config)

    _bindings.nixlAgent = with_delay
    config = nixl_agent_config(
        enable_prog_thread=progress_thread, capture_telemetry=True, backends=[]
    )
    agent = nixl_agent(str(uuid.uuid4()), config)
    _bindings.nixlAgent = make
    agent.create_backend("UCX", UCX)
    return agent


class Side:
    """An agent with memory that is registered."""

    def __init__(self, variant, size):
        self.agent = make_agent(VARIANTS[variant])
        memory = mmap.mmap(-1, size)
        self.words = numpy.frombuffer(memory, numpy.uint64)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.words[:] = 0  # touched
        self.agent.register_memory([(self.address, size, 0, "")], "DRAM")

    def prepare(self, agent, address, block, count):
        row = numpy.array([(address, block, 0, block, count)], numpy.uint64)
        return self.agent.prep_xfer_dlist(agent, row, mem_type="DRAM")


def own(variant, size):
    """Tells where its memory is, and polls for messages until standard input ends."""
    side = Side(variant, size)
    side.words[:] = numpy.arange(len(side.words), dtype=numpy.uint64)
    print(json.dumps([side.agent.get_agent_metadata().hex(), side.address]), flush=True)
    line = threading.Thread(target=sys.stdin.read, daemon=True)
    line.start()
    while line.is_alive():
        side.agent.get_new_notifs()
        time.sleep(0.001)


def read(variant, size, block, rounds):
    """GB/s of the best round."""
    command = [sys.executable, __file__, "owner", variant, str(size)]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    metadata, address = json.loads(owner.stdout.readline())
    side = Side(variant, size)
    agent = side.agent
    name = agent.add_remote_agent(bytes.fromhex(metadata))
    count = size // block
    local = side.prepare("NIXL_INIT_AGENT", side.address, block, count)
    remote = side.prepare(name, address, block, count)
    sources, targets = (numpy.array(shuffled(count), numpy.int32) for _ in range(2))
    best = float("inf")
    for number in range(-WARM_UPS, rounds):
        start = time.perf_counter()
        transfer = agent.make_prepped_xfer("READ", local, targets, remote, sources, b"b")
        state = agent.transfer(transfer)
        while state == "PROC":
            state = agent.check_xfer_state(transfer)
        seconds = time.perf_counter() - start
        if state != "DONE":
            raise RuntimeError(f"a read ended as {state}")
        agent.release_xfer_handle(transfer)
        if number >= 0:
            best = min(best, seconds)
    require_right(side.words.reshape(count, -1), sources, targets)
    owner.stdin.close()
    owner.wait()
    return size / best / 1e9


def shuffled(count):
    return random.sample(range(count), count)


def require_right(blocks, sources, targets):
    """Each block starts with the number of its first word."""
    words = blocks.shape[1]
    firsts = sources.astype(numpy.uint64) * numpy.uint64(words)
    expected = firsts[:, None] + numpy.arange(words, dtype=numpy.uint64)
    if not numpy.array_equal(blocks[targets], expected):
        raise RuntimeError("a read brought wrong bytes")


def main():
    if sys.argv[1] == "owner":
        own(sys.argv[2], int(sys.argv[3]))
    else:
        size, block, rounds = map(int, sys.argv[2:])
        print(json.dumps({variant: read(variant, size, block, rounds) for variant in VARIANTS}))


if __name__ == "__main__":
    main()
