#!/usr/bin/env python3
"""tessera's attention kernels and PyTorch's, on one GPU in one sitting, as tables of ratios.

Each case is timed by `tessera bench attention` and at once by the cuDNN and FlashAttention-2
backends of PyTorch's scaled_dot_product_attention, in two rounds of opposite order, each after a
rest, so that the GPU's clocks favour nobody: under load they fall within a tenth of a second.
Medians and spreads are over the repetitions of both rounds. Everybody is timed in CUDA graphs of
equally many launches; PyTorch also as plain calls in a row ("plain"), whose short ones cost the host
more time than the GPU. Prefill calls have at least 8192 tokens; decode takes several sets of keys
and values in turn, so that no cache serves them. --json keeps all numbers, for attention_plot.py.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash2": SDPBackend.FLASH_ATTENTION}
PREFILL_TOKENS = 8192
BYTES_OF_ALL_SETS, MAX_SETS = 256 << 20, 16  # of keys and values, as tessera does
SECONDS_OF_RUN, MAX_LAUNCHES = 2e-3, 64  # likewise
REST_SECONDS = 0.5


@dataclasses.dataclass
class Case:
    length: int
    batch: int = 0  # 0: a prefill, batched to PREFILL_TOKENS
    num_heads: int = 32
    num_kv_heads: int = 8
    head_dim: int = 128
    causal: bool = True
    contiguous: bool = False  # tessera alone: the peers have no pages

    @property
    def is_decode(self):
        return self.batch > 0

    @property
    def batch_size(self):
        return self.batch or max(1, PREFILL_TOKENS // self.length)

    @property
    def name(self):
        length = f"{self.length // 1024}k"
        words = [f"{self.batch} x {length}" if self.is_decode else length]
        if self.head_dim != 128:
            words.append(f"head dim {self.head_dim} ({self.num_heads}/{self.num_kv_heads} heads)")
        if not self.causal:
            words.append("not causal")
        if self.contiguous:
            words.append("contiguous")
        return ", ".join(words)

    @property
    def work(self):
        """FLOPs of a prefill, half the square when causal; bytes of keys and values of a decode."""
        if self.is_decode:
            return 4 * self.batch * self.num_kv_heads * self.length * self.head_dim
        square = 4 * self.batch_size * self.num_heads * self.length**2 * self.head_dim
        return square / 2 if self.causal else square

    @property
    def repetitions(self):
        return {65536: 5, 131072: 3}.get(self.length, 15) if not self.is_decode else 15


def all_cases(quick):
    prefill_lengths = [2, 8, 32] if quick else [1, 2, 4, 8, 16, 32, 64, 128]
    prefill = [Case(length * 1024) for length in prefill_lengths]
    prefill += [Case(8192, head_dim=64), Case(8192, num_heads=16, head_dim=256),
                Case(8192, causal=False), Case(8192, contiguous=True)]
    pairs = [(1, 4), (1, 32), (1, 128), (8, 8), (64, 4), (64, 8), (16, 32)]
    decode = [Case(length * 1024, batch) for batch, length in (pairs[:5:2] if quick else pairs)]
    decode.append(Case(8192, 8, contiguous=True))
    return prefill, decode


def summary(seconds):
    median = statistics.median(seconds)
    return {"median": median, "spread": (max(seconds) - min(seconds)) / median}


def time_tessera(case, arguments, repetitions, with_standard):
    command = [arguments.tessera, "bench", "attention", "--device", "cuda", "--quiet",
               "--num-heads", case.num_heads, "--num-kv-heads", case.num_kv_heads,
               "--head-dim", case.head_dim, "--repetitions", repetitions, "--json", "-"]
    if case.is_decode:
        command += ["--decode-cases", f"{case.batch}x{case.length}"]
    else:
        command += ["--lengths", case.length]
    command += [] if case.causal else ["--no-causal"]
    command += ["--contiguous"] if case.contiguous else []
    command += [] if with_standard and not case.contiguous else ["--no-standard"]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode != 0:
        return {"problem": result.stderr.strip().removeprefix("error: ")}
    return json.loads(result.stdout)


def time_runs(run, num_launches, repetitions):
    """Seconds of one launch, from `repetitions` runs of num_launches each, queued up in a row."""
    run()
    run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
              for _ in range(repetitions)]
    for begin, end in events:
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) * 1e-3 / num_launches for begin, end in events]


def time_graph(launch, num_launches, repetitions):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(num_launches):
            launch(index)
    return time_runs(graph.replay, num_launches, repetitions)


def time_peer(backend, case, tensors, repetitions):
    query, keys, values = tensors
    num_sets = len(keys)

    def launch(index):
        return F.scaled_dot_product_attention(
            query, keys[index % num_sets], values[index % num_sets],
            is_causal=case.causal and not case.is_decode, enable_gqa=True)

    def launch_all(count):
        for index in range(count):
            launch(index)

    try:
        with sdpa_kernel(backend):
            launch_all(2)
            once = min(time_runs(lambda: launch(0), 1, 2))
            count = min(MAX_LAUNCHES, max(1, round(SECONDS_OF_RUN / once)))
            count = -(-count // num_sets) * num_sets
            time.sleep(REST_SECONDS)
            graph = time_graph(launch, count, repetitions)
            time.sleep(REST_SECONDS)
            return {"graph": graph,
                    "plain": time_runs(lambda: launch_all(count), count, repetitions)}
    except RuntimeError as error:
        return {"problem": str(error).splitlines()[0][:100]}


def make_tensors(case):
    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    num_sets = 1
    if case.is_decode:
        num_sets = min(MAX_SETS, max(1, -(-BYTES_OF_ALL_SETS // case.work)))
    query_length = 1 if case.is_decode else case.length
    kv_shape = (case.batch_size, case.num_kv_heads, case.length, case.head_dim)
    return (random(case.batch_size, case.num_heads, query_length, case.head_dim),
            [random(*kv_shape) for _ in range(num_sets)],
            [random(*kv_shape) for _ in range(num_sets)])


def measure_tessera(entry, case, arguments, repetitions, is_first):
    """Adds to `entry` what `tessera bench attention` says, with times of both rounds together."""
    report = time_tessera(case, arguments, repetitions, with_standard=is_first)
    if "problem" in report:
        entry["tessera"] = report
        return
    result = report["results"][0]
    if is_first:
        entry |= {"tessera": result["tessera"], "standard": result["standard"],
                  "device": report["device"], "matmul_rate": report["matmul_flops_per_second"],
                  "read_rate": report["read_bytes_per_second"]}
    elif "seconds" in entry["tessera"]:
        seconds = entry["tessera"]["seconds"]["all"] + result["tessera"]["seconds"]["all"]
        entry["tessera"]["seconds"] = {**summary(seconds), "all": seconds}


def measure_peers(entry, case, repetitions, names):
    tensors = make_tensors(case)
    for name in names:
        timing = time_peer(PEERS[name], case, tensors, repetitions)
        if "problem" in timing:
            entry[name] = timing
            continue
        previous = entry.get(name, {})
        entry[name] = {way: {**summary(all_seconds), "all": all_seconds}
                       for way, seconds in timing.items()
                       for all_seconds in [previous.get(way, {}).get("all", []) + seconds]}
    del tensors
    torch.cuda.empty_cache()


def measure(case, arguments):
    print(f"{'decode' if case.is_decode else 'prefill'} {case.name}", file=sys.stderr, flush=True)
    repetitions = min(case.repetitions, arguments.repetitions)
    entry = {"name": case.name, **dataclasses.asdict(case), "batch": case.batch_size,
             "kind": "decode" if case.is_decode else "prefill", "work": case.work}
    peers = [] if case.contiguous else list(PEERS)
    measure_tessera(entry, case, arguments, repetitions, is_first=True)
    if peers:
        measure_peers(entry, case, repetitions, peers)
    if not arguments.quick:
        if peers:
            measure_peers(entry, case, repetitions, peers[::-1])
        measure_tessera(entry, case, arguments, repetitions, is_first=False)
    return entry


def rate_cell(timing, work, unit):
    if timing is None or "problem" in timing:
        return "-"
    return f"{work / timing['median'] / unit:,.0f} ± {timing['spread'] / 2:.1%}"


def print_table(title, entries, kind):
    unit, ceiling = (1e12, "matmul_rate") if kind == "prefill" else (1e9, "read_rate")
    print(f"\n{title}\n")
    print("| case | tessera | of limit | cuDNN | ratio | FlashAttention-2 | ratio | cuDNN, plain "
          "| FA-2, plain | standard | ratio |")
    print("|---" * 11 + "|")
    for entry in entries:
        work = entry["work"]
        ours = entry["tessera"].get("seconds")

        def ratio(timing):
            if not ours or not timing or "problem" in timing:
                return "-"
            return f"{timing['median'] / ours['median']:.2f}"

        share = f"{work / ours['median'] / entry[ceiling]:.0%}" if ours else "-"
        cudnn, flash2 = (entry.get(peer, {}) for peer in PEERS)
        standard = entry.get("standard", {}).get("seconds")
        cells = [entry["name"], rate_cell(ours, work, unit), share,
                 rate_cell(cudnn.get("graph"), work, unit), ratio(cudnn.get("graph")),
                 rate_cell(flash2.get("graph"), work, unit), ratio(flash2.get("graph")),
                 rate_cell(cudnn.get("plain"), work, unit),
                 rate_cell(flash2.get("plain"), work, unit),
                 rate_cell(standard, work, unit), ratio(standard)]
        print("| " + " | ".join(cells) + " |")
    for entry in entries:
        for who in ("tessera", "standard", *PEERS):
            problem = entry.get(who, {}).get("problem")
            if problem and problem != "not asked for":
                print(f"\n{entry['name']}, {who}: {problem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tessera", default="build/tessera", help="the command to measure")
    parser.add_argument("--only", choices=["prefill", "decode"])
    parser.add_argument("--quick", action="store_true", 
                        help="a few cases, one round of five repetitions")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path, help="file for the numbers")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions = min(arguments.repetitions, 5)

    torch.manual_seed(0)
    prefill, decode = all_cases(arguments.quick)
    cases = (prefill if arguments.only != "decode" else []) + (
        decode if arguments.only != "prefill" else [])
    report = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "cases": []}
    for case in cases:
        report["cases"].append(measure(case, arguments))
        if arguments.json:  # after each case: what was measured stays, whatever comes
            arguments.json.write_text(json.dumps(report, indent=1) + "\n")

    print(f"{torch.cuda.get_device_name()}, PyTorch {report['torch']}, cuDNN {report['cudnn']}; "
          "ratio = peer's time / tessera's")
    for kind, title in [
            ("prefill", "Prefill, TFLOP/s, against the rate of a large matrix product"),
            ("decode", "Decode, GB/s of keys and values, against the read bandwidth")]:
        entries = [entry for entry in report["cases"] if entry["kind"] == kind]
        if entries:
            print_table(title, entries, kind)


if __name__ == "__main__":
    main()
