#!/usr/bin/env python3
"""Bytes that attention moves through GPU memory, counted by the hardware, beside what theory says.

Runs `tessera bench attention --repetitions 0` under NVIDIA's profiler ncu: every kernel once, no
graphs, none of them timed. ncu empties the caches before each kernel (its default), so no kernel
finds in the L2 cache what the one before has left there; --clock-control none leaves the clocks
alone. Prints a markdown table.

Theory (Dao et al. 2022), elements of one head: standard attention moves on the order of N^2, tiled
attention N^2 d^2 / M with M elements of on-chip memory. Here both times heads, sequences and 2 bytes
with the constant 1, and M is the shared memory of one multiprocessor. The least possible is one read
of Q, K and V and one write of the output. "L2" is what the multiprocessors asked of the L2 cache,
the nearest to theory's slow memory; "DRAM" what the L2 cache asked of memory.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import tempfile

DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
L2_SECTORS = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum")
SECTOR_BYTES = 32
ELEMENT_BYTES = 2
SHARED_MEMORY_BYTES = 227 * 1024  # that a block of sm_90 can have


def plain_name(kernel):
    """void tessera::(anonymous namespace)::f<(int)128>(float *) -> f"""
    name = re.sub(r"\(anonymous namespace\)|<unnamed>", "", kernel).removeprefix("void ")
    return re.split(r"[<(]", name)[0].split("::")[-1]


def profile(arguments, length):
    """The bench's report of the case and [(kernel name, {metric: number})] in launch order."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "ncu.csv"
        command = [arguments.ncu, "--clock-control", "none", "--csv", "--print-units", "base",
                   "--log-file", log, "--metrics", ",".join(DRAM + L2_SECTORS),
                   arguments.tessera, "bench", "attention", "--device", "cuda", "--quiet",
                   "--lengths", length, "--num-heads", arguments.num_heads, "--num-kv-heads",
                   arguments.num_kv_heads, "--head-dim", arguments.head_dim, "--repetitions", 0,
                   "--json", "-"]
        result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        lines = log.read_text().splitlines() if log.exists() else []
    if result.returncode != 0:
        raise SystemExit("\n".join(["ncu failed:", *lines[-20:]]))
    kernels = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        metrics = kernels.setdefault(int(row["ID"]), (plain_name(row["Kernel Name"]), {}))[1]
        metrics[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    report = json.loads(result.stdout[result.stdout.index("{"):].splitlines()[0])
    return report["results"][0], [kernels[index] for index in sorted(kernels)]


def total(metrics, names, factor=1):
    return sum(metrics.get(name, 0.0) for name in names) * factor


def gigabytes(count):
    return f"{count / 1e9:,.3f}"


def print_case(result, kernels, arguments):
    length, batch = result["context_length"], result["batch_size"]
    heads, kv_heads, dim = arguments.num_heads, arguments.num_kv_heads, arguments.head_dim
    square = batch * heads * length**2 * ELEMENT_BYTES
    tiled = square * dim**2 / (SHARED_MEMORY_BYTES / ELEMENT_BYTES)
    least = batch * length * 2 * (heads + kv_heads) * dim * ELEMENT_BYTES
    theory = {"tessera": f"N² d² / M: {gigabytes(tiled)}", "standard": f"N²: {gigabytes(square)}"}
    groups = {"tessera": [], "standard": []}
    for kernel in kernels:
        groups["tessera" if "attention" in kernel[0] else "standard"].append(kernel)
    for name, members in groups.items():
        sums = {}
        for kernel, metrics in members:
            print(f"| {length} x {batch} | {name}: {kernel[:60]} | "
                  f"{gigabytes(metrics[DRAM[0]])} | {gigabytes(metrics[DRAM[1]])} | "
                  f"{gigabytes(total(metrics, DRAM))} | "
                  f"{gigabytes(total(metrics, L2_SECTORS, SECTOR_BYTES))} | | |")
            for metric, value in metrics.items():
                sums[metric] = sums.get(metric, 0.0) + value
        print(f"| {length} x {batch} | **{name}** | {gigabytes(total(sums, DRAM[:1]))} | "
              f"{gigabytes(total(sums, DRAM[1:]))} | **{gigabytes(total(sums, DRAM))}** | "
              f"{gigabytes(total(sums, L2_SECTORS, SECTOR_BYTES))} | {theory[name]} | "
              f"{gigabytes(least)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default="build/tessera", help="the command to measure")
    parser.add_argument("--ncu", default="ncu", help="NVIDIA's profiler")
    parser.add_argument("--lengths", default="4096,16384")
    parser.add_argument("--num-heads", type=int, default=32)
    parser.add_argument("--num-kv-heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=128)
    arguments = parser.parse_args()
    print("Gigabytes, causal prefill, bf16\n")
    print("| tokens x sequences | kernel | DRAM read | DRAM written | DRAM | L2 | theory | least |")
    print("|---" * 8 + "|")
    for length in arguments.lengths.split(","):
        print_case(*profile(arguments, int(length)), arguments)


if __name__ == "__main__":
    main()
