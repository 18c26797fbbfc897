"""Holds an independent implementation of vLLM 0.33.0's protocol against engines that run.

Run by ``./dormouse test --interop``. Prints a line per check; the exit status is 0 if all passed.
"""

import contextlib
import dataclasses
import json
import sys
import threading
import time
import traceback
import uuid

import numpy

import protocol
from engine import Engine
from peer import HEADS, TOKENS_PER_BLOCK, Peer, SideChannel, ask, metadata_of

PROMPT = "The history of computing hardware starts with simple devices to ease calculation. " * 4
OTHER_PROMPT = "Once upon a time there was a little dragon who lived in a cave. " * 5
BLOCKS = range(5, 5 + 64)
LEASE_SECONDS = 6


def expect(condition, what):
    """Fails the check that runs."""
    if not condition:
        raise AssertionError(what)


def equal(actual, expected):
    """Fails the check unless both are equal."""
    expect(actual == expected, f"{actual!r}, expected {expected!r}")


def soon(condition, what, seconds=5):
    """Waits for something."""
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)


def completion(params, readers=1):
    """What a reader says when it has read."""
    return f"{params['remote_request_id']}:{readers}".encode()


def local_blocks(params):
    """As many blocks of a peer as the prompt has."""
    return list(BLOCKS)[: len(params["remote_block_ids"][0])]


class World:
    """The engines, and what one of them prefilled."""

    def __init__(self, launcher):
        push = '{"kv_connector":"NixlPushConnector","kv_role":"%s"}'
        decode = ["--role", "decode", "--no-enable-prefix-caching"]
        self.prefill = Engine(launcher, "--role", "prefill", "--enable-sleep-mode")
        self.failing = Engine(launcher, *decode)
        self.recomputing = Engine(launcher, *decode, "--kv-load-failure-policy", "recompute")
        self.push_prefill = Engine(launcher, "--kv-transfer-config", push % "kv_producer")
        self.push_decode = Engine(
            launcher, "--no-enable-prefix-caching", "--kv-transfer-config", push % "kv_consumer"
        )
        turns = '{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":'
        turns += '{"bidirectional_kv_xfer":true,"kv_recompute_threshold":0}}'
        self.both = Engine(launcher, "--kv-transfer-config", turns, "--no-enable-prefix-caching")
        self.engines = list(vars(self).values())

    def start(self):
        """Waits for all, then reads the prompt's KV and computes its text."""
        for engine in self.engines:
            engine.await_ready()
        self.text = self.prefill.complete(PROMPT)
        params = self.prefill.prefill(PROMPT)
        self.tokens = params["remote_num_tokens"]
        self.kv = read(Peer(), params)
        soon(self.prefill.is_idle, "the blocks are free")

    def close(self):
        """Ends the engines."""
        for engine in self.engines:
            engine.close()


def read(peer, params, readers=1):
    """Reads a prompt's KV as a decode engine does."""
    blocks = local_blocks(params)
    name = peer.load(metadata_of(params)[1])
    state = peer.move("READ", name, blocks, params["remote_block_ids"][0], completion(params, readers))
    equal(state, "DONE")
    peer.forget(name)
    return peer.kv(blocks, params["remote_num_tokens"])


@contextlib.contextmanager
def holder(world, answer=None, generation=1, ranks=1, tokens=TOKENS_PER_BLOCK, **factors):
    """A prefill engine that holds the prompt: its ranks, and a maker of its parameters."""
    engine_id = str(uuid.uuid4())
    blocks = list(BLOCKS)[: -(-world.tokens // tokens)]
    peers = [Peer(HEADS // ranks, tokens, engine_id, **factors) for _ in range(ranks)]
    for rank, peer in enumerate(peers):
        peer.fill(blocks, world.kv[:, rank * HEADS // ranks : (rank + 1) * HEADS // ranks])
    channel = SideChannel((lambda rank: answer(peers[rank])) if answer else lambda rank: peers[rank].payload())

    def params(**changes):
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [blocks],
            "remote_engine_id": engine_id,
            "remote_request_id": f"cmpl-{uuid.uuid4()}-0-0123abcd",
            "remote_host": "127.0.0.1",
            "remote_port": channel.port,
            "tp_size": ranks,
            "dcp_size": 1,
            "pp_size": 1,
            "remote_num_tokens": world.tokens,
            "remote_blocks_expiry_time": None,
            "remote_registration_generation": generation,
            "transfer_mode": "pull",
        } | changes

    try:
        yield peers, channel, params
    finally:
        channel.close()


# ------------------------------------------------------------ as a decode engine


def the_payload_is_what_vllm_expects(world):
    params = world.prefill.prefill(PROMPT)
    frames = ask(params)
    equal(len(frames), 2)
    equal((frames[1][:1], len(frames[1])), (b"\xcb", 9))
    payload = protocol.decode(frames[0], protocol.HandshakePayload)
    equal(payload.compatibility_hash, protocol.compatibility_hash())
    metadata = protocol.decode(payload.agent_metadata_bytes, protocol.AgentMetadata)
    keys = protocol.decode(payload.agent_metadata_bytes, dict)
    equal(list(keys), list(dataclasses.asdict(metadata)) + ["same_host"])
    del keys["same_host"]
    equal(protocol.encode(metadata), protocol.encode(keys))
    count = metadata.num_blocks
    equal(metadata.engine_id, params["remote_engine_id"])
    expected = Peer().metadata(
        engine_id=metadata.engine_id,
        agent_metadata=metadata.agent_metadata,
        kv_caches_base_addr=metadata.kv_caches_base_addr,
        num_blocks=count,
        region_num_blocks=[count] * protocol.LAYERS,
    )
    equal(metadata, expected)


def kv_is_the_prompts_and_a_completion_frees_it(world):
    again = read(Peer(), world.prefill.prefill(PROMPT))
    expect(numpy.array_equal(again, world.kv), "the same prompt has the same KV")
    other = read(Peer(), world.prefill.prefill(OTHER_PROMPT))[:, :, : world.tokens]
    differing = numpy.mean(other != world.kv[:, :, : other.shape[2]])
    expect(differing > 0.3, f"another prompt has other KV, {differing:.0%} differ")
    soon(world.prefill.is_idle, "the blocks are free")


def blocks_are_held_until_all_readers_have_read(world):
    params = world.prefill.prefill(PROMPT)
    for reader in range(3):
        expect(not world.prefill.is_idle(), f"held before reader {reader}")
        expect(numpy.array_equal(read(Peer(), params, 3), world.kv), "each reads the same")
        time.sleep(0.2)
    soon(world.prefill.is_idle, "the blocks are free")


def heartbeats_prolong_the_lease_and_silence_ends_it(world):
    params = world.prefill.prefill(PROMPT)
    peer = Peer()
    name = peer.load(metadata_of(params)[1])
    expired = world.prefill.metric("vllm:nixl_num_kv_expired_reqs_total")
    end = time.monotonic() + 1.5 * LEASE_SECONDS
    while time.monotonic() < end:
        peer.tell(name, f"HB:{params['remote_request_id']},unknown".encode())
        time.sleep(0.5)
    expect(not world.prefill.is_idle(), "still held")
    soon(world.prefill.is_idle, "the lease ends", LEASE_SECONDS)
    equal(world.prefill.metric("vllm:nixl_num_kv_expired_reqs_total"), expired + 1)
    late = world.prefill.metric("vllm:nixl_num_notifications_after_expiry_total")
    peer.tell(name, completion(params))
    counter = "vllm:nixl_num_notifications_after_expiry_total"
    soon(lambda: world.prefill.metric(counter) == late + 1, "a late completion is counted")


def broken_messages_are_counted_and_change_nothing(world):
    params = world.prefill.prefill(PROMPT)
    peer = Peer()
    name = peer.load(metadata_of(params)[1])
    own = params["remote_request_id"].encode()
    counter = "dormouse:nixl_malformed_notifications_total"
    before = world.prefill.metric(counter)
    broken = [b"", b"x", own, own + b":", own + b":x", own + b":0", own + b":-1", b"\xff:1"]
    for message in broken + [b"HB:\xff", b"PUSH_REG:", b"PUSH_REG:\x81", b"x" * 100_000]:
        peer.tell(name, message)
    soon(lambda: world.prefill.metric(counter) >= before + len(broken), "counted")
    expect(not world.prefill.is_idle(), "still held")
    peer.tell(name, completion(params))
    soon(world.prefill.is_idle, "the blocks are free")


def broken_questions_get_no_answer_and_harm_nobody(world):
    params = world.prefill.prefill(PROMPT)
    right = protocol.question(0, 0)
    for frames in (
        [right],
        [b"", right, b""],
        [b"", b""],
        [b"", b"\xc1\xff"],
        [b"", protocol.encode([protocol.GET_META, 0])],
        [b"", protocol.encode([protocol.GET_META, 0, 0, 0])],
        [b"", protocol.encode([protocol.GET_META, -1, 0])],
        [b"", bytes(1 << 20)],
    ):
        equal(ask(params, frames, timeout_ms=300), None)
    for constant in (protocol.GET_META.decode(), "other", b"other", b"x" * 300):
        equal(ask(params, [b"", protocol.encode([constant, 0, 0])])[0], ask(params)[0])
    expect(ask(params, [b"", protocol.question(0, 1)])[0] != ask(params)[0], "no such rank")
    read(Peer(), params)


def a_wake_is_a_new_generation_with_the_same_kv(world):
    before = world.prefill.prefill(PROMPT)
    read(Peer(), before)
    equal(world.prefill.call("/sleep?level=1&mode=wait")[0], 200)
    frames = ask(before)
    expect(frames is None or len(frames[0]) < 200, "no payload of a sleeping engine")
    equal(world.prefill.call("/wake_up")[0], 200)
    after = world.prefill.prefill(PROMPT)
    key = "remote_registration_generation"
    equal(after[key], before[key] + 1)
    expect(numpy.array_equal(read(Peer(), after), world.kv), "the same KV")


# ----------------------------------------------------------- as a prefill engine


def a_read_gives_the_text_of_an_engine_that_works_alone(world):
    with holder(world) as ([peer], channel, params):
        for decoder in (world.failing, world.recomputing):
            mine = params()
            equal(decoder.complete(PROMPT, mine), world.text)
            equal(peer.hear(lambda m: not m.startswith(b"HB:")), completion(mine))
        minimal = ("tp_size", "dcp_size", "pp_size", "remote_num_tokens", "transfer_mode")
        some = {k: v for k, v in params().items() if k not in minimal}
        equal(world.failing.complete(PROMPT, some | {"unknown": [1]}), world.text)
        equal(channel.asked, [0, 0])
        peer.fill(BLOCKS[:2], world.kv[:, :, ::-1])
        expect(world.failing.complete(PROMPT, params()) != world.text, "other KV, other text")


def a_higher_generation_costs_one_handshake_and_a_lower_none(world):
    with holder(world) as (_, channel, params):
        for generation, handshakes in ((3, 1), (3, 1), (4, 2), (4, 2)):
            mine = params(remote_registration_generation=generation)
            equal(world.failing.complete(PROMPT, mine), world.text)
            equal(len(channel.asked), handshakes)
        gone = world.failing.complete(PROMPT, params(remote_registration_generation=3))
        expect(gone.startswith("502 "), f"KV of an older generation is gone: {gone}")
        equal(len(channel.asked), 2)


def ranks_and_short_blocks_are_put_together(world):
    with holder(world, ranks=3) as (peers, channel, params):
        mine = params()
        equal(world.failing.complete(PROMPT, mine), world.text)
        for peer in peers:
            equal(peer.hear(lambda m: not m.startswith(b"HB:")), completion(mine))
        equal(sorted(channel.asked), [0, 1, 2])
    with holder(world, tokens=8) as (_, _, params):
        equal(world.failing.complete(PROMPT, params()), world.text)


def what_does_not_fit_is_refused_by_policy(world):
    regions = protocol.LAYERS
    other_metadata = [
        {"engine_id": "other"},
        {"block_size": 32},
        {"num_blocks": 0},
        {"block_lens": [1] * regions},
        {"block_strides": [1] * regions},
        {"kv_caches_base_addr": [0] * regions},
        {"kv_cache_layout": "LBNHC"},
        {"region_names": protocol.REGION_NAMES[::-1]},
        {"region_mem_types": ["VRAM"] * regions},
        {"dcp_size": 2},
        {"agent_metadata": b"junk"},
    ]
    answers = [lambda peer, c=changes: peer.payload(**c) for changes in other_metadata]
    answers += [
        lambda peer: peer.payload()[:1],
        lambda peer: peer.payload() + [b""],
        lambda peer: [b"", b""],
        lambda peer: [peer.payload()[0][:200], peer.payload()[1]],
        lambda peer: [b"\xdf\xff\xff\xff\xff", peer.payload()[1]],
    ]
    cases = [(answer, {}) for answer in answers]
    cases += [(None, {"model": "other"}), (None, {"nixl_connector_version": 14})]
    cases += [(None, {"transfer_mode": "push"}), (lambda peer: None, {})]
    for number, (answer, factors) in enumerate(cases):
        for decoder in (world.failing, world.recomputing):
            with holder(world, answer, **factors) as (_, channel, params):
                text = decoder.complete(PROMPT, params())
                if decoder is world.recomputing:
                    equal(text, world.text)
                else:
                    expect(text.startswith("502 "), f"case {number}: {text}")
                equal(len(channel.asked), 1)
                soon(decoder.is_idle, f"case {number} leaves nothing")


def what_comes_in_a_pause_lets_its_holder_go(world):
    with holder(world) as ([peer], _, params):
        equal(world.failing.call("/pause?mode=wait")[0], 200)
        mine = params()
        text = world.failing.complete(PROMPT, mine)
        expect(text.startswith("503 engine_paused "), text)
        equal(peer.hear(lambda m: True), completion(mine))
        equal(world.failing.call("/resume")[0], 200)
        equal(world.failing.complete(PROMPT, params()), world.text)


def a_refused_request_lets_its_holder_go(world):
    with holder(world) as ([peer], _, params):
        mine = params()
        body = {"prompt": PROMPT, "max_tokens": 0, "kv_transfer_params": mine}
        equal(world.failing.call("/v1/completions", body)[0], 400)
        equal(peer.hear(lambda m: True), completion(mine))


# ------------------------------------------------------------------- next turns


def what_was_decoded_is_read_by_a_prefill_engine(world):
    with holder(world) as (_, _, params):
        body = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0, "kv_transfer_params": params()}
        answer = json.loads(world.both.call("/v1/completions", body)[1])
    equal(answer["choices"][0]["text"], world.text)
    turn = answer["kv_transfer_params"]
    equal((turn["do_remote_decode"], turn["do_remote_prefill"]), (True, False))
    left = turn["remote_blocks_expiry_time"] - protocol.decode(ask(turn)[1], float)
    expect(420 < left < 480, f"held for the time of vLLM's decode engines, {left} s are left")
    expect(turn["remote_num_tokens"] > world.tokens, "the output is held, too")
    expect(numpy.array_equal(read(Peer(), turn)[:, :, : world.tokens], world.kv), "the same KV")
    soon(world.both.is_idle, "the blocks are free")


def a_next_turn_is_read_from_a_decode_engine_in_time(world):
    computed = "dormouse:prompt_tokens_computed_total"
    late = "vllm:nixl_num_kv_expired_reqs_total"
    for seconds, is_late in ((60, False), (4, True)):
        with holder(world) as ([peer], _, params):
            mine = params(
                do_remote_prefill=False,
                do_remote_decode=True,
                remote_blocks_expiry_time=time.perf_counter() + seconds,
            )
            before = world.both.metric(computed), world.both.metric(late)
            body = {"prompt": PROMPT, "max_tokens": 1, "kv_transfer_params": mine}
            answer = json.loads(world.both.call("/v1/completions", body)[1])
            equal(world.both.metric(computed) - before[0], world.tokens if is_late else 0)
            equal(world.both.metric(late) - before[1], float(is_late))
            if not is_late:
                equal(peer.hear(lambda m: True), completion(mine))
        kv = read(Peer(), answer["kv_transfer_params"])
        expect(numpy.array_equal(kv[:, :, :-1], world.kv[:, :, :-1]), "the same KV")
        soon(world.both.is_idle, "the blocks are free")


# ------------------------------------------------------------------------- push


def pushed_blocks_come_whichever_side_is_first(world):
    peer = Peer(transfer_mode="push")
    channel = SideChannel(lambda rank: peer.payload())
    first = world.push_prefill.prefill(PROMPT, "warm")
    found, metadata = metadata_of(first)
    equal(found, protocol.compatibility_hash(transfer_mode="push"))
    name = peer.load(metadata)

    def register(request_id, blocks):
        values = (request_id, peer.engine_id, "127.0.0.1", channel.port, 1, [blocks])
        values += (metadata.engine_id, first["remote_host"], first["remote_port"], 1, 1)
        registration = dict(zip(protocol.REGISTRATION_KEYS, values, strict=True))
        peer.tell(name, protocol.PUSH_REGISTRATION + protocol.encode(registration))

    blocks = local_blocks(first)
    for round_, registers_first in enumerate((False, True)):
        peer.fill(blocks, numpy.zeros_like(world.kv))
        own = f"cmpl-round{round_}-0-0123abcd"
        if registers_first:
            register(own, blocks)
            time.sleep(0.3)
        world.push_prefill.prefill(PROMPT, f"round{round_}")
        if not registers_first:
            register(own, blocks)
        equal(peer.hear(lambda m: not m.startswith(b"HB:")), f"{own}:1".encode())
        expect(numpy.array_equal(peer.kv(blocks, world.tokens), world.kv), "the prompt's KV")
    soon(world.push_prefill.is_idle, "the blocks are free", 2 * LEASE_SECONDS)
    channel.close()


def a_decode_engine_registers_and_takes_a_push(world):
    with holder(world, transfer_mode="push") as ([peer], channel, params):
        for number in range(2):
            mine = params(transfer_mode="push")
            for key in ("remote_blocks_expiry_time", "remote_registration_generation"):
                del mine[key]
            texts = []
            client = threading.Thread(
                target=lambda: texts.append(world.push_decode.complete(PROMPT, mine, f"push{number}"))
            )
            client.start()
            message = peer.hear(lambda m: m.startswith(protocol.PUSH_REGISTRATION))
            expect(message is not None, "a registration")
            registration = protocol.decode(message[len(protocol.PUSH_REGISTRATION) :], dict)
            keys = list(registration)[: len(protocol.REGISTRATION_KEYS)]
            equal(keys, protocol.REGISTRATION_KEYS)
            expect(
                registration["request_id"].rpartition("-")[0] == f"cmpl-push{number}-0",
                f"an id that vLLM pairs: {registration['request_id']}",
            )
            there = {f"remote_{k}": registration[f"decode_{k}"] for k in ("host", "port")}
            name = peer.load(metadata_of(there)[1])
            written = f"{registration['request_id']}:1".encode()
            [remote] = registration["local_block_ids"]
            equal(peer.move("WRITE", name, mine["remote_block_ids"][0], remote, written), "DONE")
            client.join()
            equal(texts, [world.text])
            peer.forget(name)
        equal(channel.asked, [0])


CHECKS = [
    the_payload_is_what_vllm_expects,
    kv_is_the_prompts_and_a_completion_frees_it,
    blocks_are_held_until_all_readers_have_read,
    heartbeats_prolong_the_lease_and_silence_ends_it,
    broken_messages_are_counted_and_change_nothing,
    broken_questions_get_no_answer_and_harm_nobody,
    a_wake_is_a_new_generation_with_the_same_kv,
    a_read_gives_the_text_of_an_engine_that_works_alone,
    a_higher_generation_costs_one_handshake_and_a_lower_none,
    ranks_and_short_blocks_are_put_together,
    what_does_not_fit_is_refused_by_policy,
    what_comes_in_a_pause_lets_its_holder_go,
    a_refused_request_lets_its_holder_go,
    what_was_decoded_is_read_by_a_prefill_engine,
    a_next_turn_is_read_from_a_decode_engine_in_time,
    pushed_blocks_come_whichever_side_is_first,
    a_decode_engine_registers_and_takes_a_push,
]


def main(launcher):
    """Runs all checks; the number of those that failed."""
    failed = 0
    world = World(launcher)
    try:
        world.start()
        for check in CHECKS:
            try:
                check(world)
                print("passed", check.__name__, flush=True)
            except Exception:
                failed += 1
                print("FAILED", check.__name__, flush=True)
                traceback.print_exc()
    finally:
        world.close()
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
