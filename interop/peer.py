"""An engine's half of the protocol without an engine: an agent, memory, and a side channel."""

import ctypes
import mmap
import threading
import time
import uuid

import numpy
import zmq
from nixl_cu12 import nixl_agent, nixl_agent_config

import protocol

HEADS = 3
TOKENS_PER_BLOCK = 16
HEAD_BYTES_PER_TOKEN = 2 * 64 * 2  # K and V of 64 float16
BLOCKS = 64


def ask(params, frames=None, timeout_ms=5000):
    """The frames that a side channel answers with, or None for silence."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.RCVTIMEO, timeout_ms)
    try:
        socket.connect(f"tcp://{params['remote_host']}:{params['remote_port']}")
        socket.send_multipart(frames or [b"", protocol.question(0, 0)])
        return socket.recv_multipart()[1:]
    except zmq.Again:
        return None
    finally:
        context.destroy(linger=0)


def metadata_of(params):
    """What the engine of ``params`` publishes: hash, then metadata."""
    payload = protocol.decode(ask(params)[0], protocol.HandshakePayload)
    metadata = protocol.decode(payload.agent_metadata_bytes, protocol.AgentMetadata)
    return payload.compatibility_hash, metadata


class SideChannel(threading.Thread):
    """A listener like vLLM's. It dies of a question that would kill vLLM's.

    ``answer`` gets the tensor parallel rank and gives the frames, or None to stay silent.
    """

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.asked = []
        self._answer = answer
        self._stopped = False
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.RCVTIMEO, 100)
        self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.start()

    def run(self):
        while not self._stopped:
            try:
                identity, delimiter, body = self._socket.recv_multipart()
            except zmq.Again:
                continue
            constant, pp_rank, tp_rank = protocol.decode(body, tuple[bytes, int, int])
            assert (delimiter, constant, pp_rank) == (b"", protocol.GET_META, 0)
            self.asked.append(tp_rank)
            frames = self._answer(tp_rank)
            if frames is not None:
                self._socket.send_multipart([identity, b"", *frames])
        self._context.destroy(linger=0)

    def close(self):
        """Ends the thread."""
        self._stopped = True
        self.join()


class Peer:
    """One rank with ``heads`` KV heads in blocks of ``tokens`` tokens."""

    def __init__(self, heads=HEADS, tokens=TOKENS_PER_BLOCK, engine_id=None, **factors):
        self.engine_id = engine_id or str(uuid.uuid4())
        self.factors = factors
        self.notices = []
        self._agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(backends=["UCX"]))
        self._shape = (heads, tokens, HEAD_BYTES_PER_TOKEN)
        self._block_bytes = heads * tokens * HEAD_BYTES_PER_TOKEN
        self._memory = mmap.mmap(-1, protocol.LAYERS * BLOCKS * self._block_bytes)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        size = BLOCKS * self._block_bytes
        self._bases = [base + layer * size for layer in range(protocol.LAYERS)]
        self._agent.register_memory([(start, size, 0, "") for start in self._bases], "DRAM")
        rows = [(start, self._block_bytes, 0, self._block_bytes, BLOCKS) for start in self._bases]
        self._local = self._prepare("NIXL_INIT_AGENT", rows)
        self._remotes = {}
        shape = (protocol.LAYERS, BLOCKS, *self._shape)
        self._kv = numpy.frombuffer(self._memory, numpy.uint8).reshape(shape)

    def _prepare(self, agent, rows):
        return self._agent.prep_xfer_dlist(agent, numpy.array(rows, numpy.uint64), mem_type="DRAM")

    def kv(self, blocks, tokens):
        """A copy of what the blocks hold: layer, head, token, byte."""
        by_head = self._kv[:, blocks].transpose(0, 2, 1, 3, 4)
        heads = self._shape[0]
        return by_head.reshape(protocol.LAYERS, heads, -1, HEAD_BYTES_PER_TOKEN)[:, :, :tokens].copy()

    def fill(self, blocks, kv):
        """Writes what ``kv`` gave into blocks."""
        per_block = self._shape[1]
        for number, block in enumerate(blocks):
            part = kv[:, :, number * per_block : (number + 1) * per_block]
            self._kv[:, block, :, : part.shape[2]] = part

    def metadata(self, **changes):
        """What this rank publishes, with fields changed."""
        regions = protocol.LAYERS
        fields = {
            "engine_id": self.engine_id,
            "agent_metadata": self._agent.get_agent_metadata(),
            "kv_caches_base_addr": self._bases,
            "device_id": 0,
            "num_blocks": BLOCKS,
            "block_lens": [self._block_bytes] * regions,
            "block_strides": [self._block_bytes] * regions,
            "kv_cache_layout": "LBHNC",
            "block_size": self._shape[1],
            "ssm_sizes": (0, 0),
            "attn_backend_name": "FLASH_ATTN",
            "physical_blocks_per_logical_kv_block": 1,
            "region_num_blocks": [BLOCKS] * regions,
            "region_group_ids": [0] * regions,
            "region_names": protocol.REGION_NAMES,
            "region_mem_types": ["DRAM"] * regions,
        }
        return protocol.AgentMetadata(**(fields | changes))

    def payload(self, **changes):
        """The frames of an answer."""
        payload = protocol.HandshakePayload(
            protocol.compatibility_hash(**self.factors), protocol.encode(self.metadata(**changes))
        )
        return [protocol.encode(payload), protocol.encode(time.perf_counter())]

    def load(self, metadata):
        """Makes a remote rank's blocks usable, instead of what was loaded of it before."""
        name = self._agent.add_remote_agent(metadata.agent_metadata)
        columns = (metadata.kv_caches_base_addr, metadata.block_lens, metadata.block_strides)
        counts = metadata.region_num_blocks
        rows = [
            (base, length, metadata.device_id, stride, count)
            for base, length, stride, count in zip(*columns, counts, strict=True)
        ]
        self._remotes[name] = (self._prepare(name, rows), counts[0])
        return name

    def forget(self, name):
        """Drops a remote rank."""
        self._remotes.pop(name)[0].release()
        self._agent.remove_remote_agent(name)

    def move(self, operation, name, local, remote, message):
        """Reads or writes whole blocks; the message goes along. The final state."""
        handle, count = self._remotes[name]

        def ids(blocks, of_all):
            of_regions = [r * of_all + b for r in range(protocol.LAYERS) for b in blocks]
            return numpy.array(of_regions, numpy.int32)

        transfer = self._agent.make_prepped_xfer(
            operation, self._local, ids(local, BLOCKS), handle, ids(remote, count), message
        )
        state = self._agent.transfer(transfer)
        end = time.monotonic() + 20
        while state == "PROC" and time.monotonic() < end:
            time.sleep(0.001)
            state = self._agent.check_xfer_state(transfer)
        self._agent.release_xfer_handle(transfer)
        return state

    def tell(self, name, message):
        """Sends a message of its own."""
        self._agent.send_notif(name, message)

    def hear(self, wanted, seconds=20):
        """The first new message that ``wanted`` takes, or None; those before it are in ``notices``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for messages in self._agent.get_new_notifs().values():
                self.notices += messages
            for position, message in enumerate(self.notices):
                if wanted(message):
                    del self.notices[: position + 1]
                    return message
            time.sleep(0.01)
        return None
