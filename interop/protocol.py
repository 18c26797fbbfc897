"""Messages of vLLM 0.33.0's NIXL connector, written from their description alone.

Nothing here is taken from the Java sources: what both sides agree on, they agree on by the protocol.
"""

import dataclasses
import hashlib
import json

import msgspec

GET_META = b"get_meta_msg"
PUSH_REGISTRATION = b"PUSH_REG:"
LAYERS = 30
REGION_NAMES = [f"model.layers.{layer}.self_attn.attn" for layer in range(LAYERS)]
PREFILL = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
REGISTRATION_KEYS = [
    "request_id",
    "decode_engine_id",
    "decode_host",
    "decode_port",
    "decode_tp_size",
    "local_block_ids",
    "remote_engine_id",
    "remote_host",
    "remote_port",
    "remote_tp_size",
    "remote_pp_size",
]


@dataclasses.dataclass
class AgentMetadata:
    """NixlAgentMetadata, version 15; the order of the fields is the order on the wire."""

    engine_id: str
    agent_metadata: bytes
    kv_caches_base_addr: list[int]
    device_id: int
    num_blocks: int
    block_lens: list[int]
    block_strides: list[int]
    kv_cache_layout: str
    block_size: int
    ssm_sizes: tuple[int, int]
    attn_backend_name: str
    physical_blocks_per_logical_kv_block: int
    region_num_blocks: list[int] | None = None
    region_group_ids: list[int] | None = None
    region_names: list[str] | None = None
    region_mem_types: list[str] | None = None
    dcp_size: int = 1
    pcp_size: int = 1
    ple_block_len: int | None = None
    region_members: list[list[str]] = dataclasses.field(default_factory=list)
    packed_member_layouts: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class HandshakePayload:
    """NixlHandshakePayload."""

    compatibility_hash: str
    agent_metadata_bytes: bytes


encode = msgspec.msgpack.encode


def decode(data: bytes, kind):
    """Reads one message as strictly as vLLM does; unknown keys are passed over."""
    return msgspec.msgpack.decode(data, type=kind)


def question(pp_rank: int, tp_rank: int) -> bytes:
    """What a reader asks a side channel."""
    return encode([GET_META, pp_rank, tp_rank])


def compatibility_hash(**changes) -> str:
    """The hash of an engine of the default model, or of one that differs by ``changes``."""
    factors = {
        "vllm_version": "0.33.0",
        "nixl_connector_version": 15,
        "model": "Smollm2 135M 8k Lc100K Mix1 Ep2",
        "dtype": "torch.float16",
        "num_kv_heads": 3,
        "head_size": 64,
        "num_hidden_layers": LAYERS,
        "attn_backend_name": "FLASH_ATTN",
        "cache_dtype": "auto",
        "is_hma_enabled": True,
        "speculative_config": None,
        "transfer_mode": "pull",
    } | changes
    return hashlib.sha256(json.dumps(factors, sort_keys=True).encode()).hexdigest()
