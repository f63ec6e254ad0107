#!/usr/bin/env python3
"""Fails when the code breaks the rules of ARCHITECTURE.md that a machine can check.

    check_dependencies.py ROOT          checks a source tree
    check_dependencies.py --self-test   plants one violation of each rule in a toy tree
"""

import pathlib
import re
import sys
import tempfile

# What says what an operation is, on every device.
DEFINITIONS = ["kernels/attention_params.h", "kernels/backend_limits.h", "kernels/block_fields.h",
               "kernels/block_spec.h", "kernels/cuda_status.h", "kernels/device.h", "kernels/fused_decoder.h",
               "kernels/fused_operations.h", "kernels/kernel_choice.h", "kernels/layer_weights.h",
               "kernels/operations.h", "kernels/read_ahead.h", "kernels/rope_params.h",
               "kernels/sampling_params.h", "kernels/tensor", "kernels/weight_matrix.h"]
# Folder -> the files and folders it may include besides itself. The longest entry that a file's
# path begins with is the one that counts.
MAY_INCLUDE = {
    # Subcommands on top, what a process and a terminal are at the bottom.
    "apps": ["apps", "engine"],
    "apps/process": ["engine"],
    "apps/terminal": ["apps/process", "engine"],
    "apps/files": ["apps/terminal", "apps/process", "engine"],
    "apps/line_editor": ["apps/files", "apps/terminal", "apps/process", "engine"],
    **{f"apps/{folder}": ["apps/options", "apps/files", "apps/terminal", "apps/process", "engine"]
       for folder in ["options", "answer"]},
    **{f"apps/{folder}": ["apps/answer", "apps/options", "apps/files", "apps/terminal",
                          "apps/process", "engine"]
       for folder in ["batch", "bench"]},
    "apps/chat": ["apps/answer", "apps/line_editor", "apps/options", "apps/files",
                  "apps/terminal", "apps/process", "engine"],
    "engine": ["kernels/backend.h", *DEFINITIONS, "model_loaders"],
    # Alone in knowing how devices are measured and the comparator: no model can run through it.
    "engine/benchmark": ["engine", "kernels/backend.h", "kernels/device_measurement.h",
                         "kernels/standard_attention.h", *DEFINITIONS],
    "engine/engine.cpp": ["engine", "kernels/device_measurement.h"],
    "kernels": ["kernels"],
    "kernels/cpu": ["kernels"],
    # Within CUDA: shared words at the bottom, operations beside each other, the decode step, which
    # holds attention and products of its own, on top.
    "kernels/cuda": ["kernels"],
    "kernels/cuda/primitives": ["kernels/tensor"],
    "kernels/cuda/device": ["kernels/cuda/primitives", *DEFINITIONS],
    **{f"kernels/cuda/{operation}": ["kernels/cuda/device", "kernels/cuda/primitives",
                                     *DEFINITIONS]
       for operation in ["transfer", "rows", "linear", "attention", "sampling"]},
    "kernels/cuda/attention/standard": ["kernels/cuda/device", "kernels/cuda/primitives",
                                        "kernels/standard_attention.h", "kernels/tensor"],
    "kernels/cuda/decode_step": ["kernels/cuda/attention/arguments.cuh",
                                 "kernels/cuda/attention/warp_attention.cuh",
                                 "kernels/cuda/attention/decode",
                                 "kernels/cuda/device", "kernels/cuda/primitives", *DEFINITIONS],
    "kernels/tensor": [],
    "model_loaders": ["kernels/block_spec.h", "kernels/tensor"],
    "tests": ["apps", "engine", "kernels", "model_loaders"],
    "weights": [],
}
# Seen only by themselves, by the files that lie directly in kernels, and by tests.
PRIVATE = {"kernels/cpu", "kernels/cuda"}
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py"}
MAX_LINES, MAX_ATTENTION_LINES = 500, 600
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
CUDA_HEADER = re.compile(r"cuda|cublas|nvrtc|cooperative_groups|mma\.h|cub/|cute/|cutlass/")
CUDA_MEMORY = re.compile(r"\bcuda(Malloc|Free)\w*\s*\(")
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(|\benviron\b")


def is_under(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    return max((folder for folder in MAY_INCLUDE if is_under(path, folder)), key=len, default=None)


def check_includes(path, text, files):
    folder = folder_of(path)
    for bracket, included in INCLUDE.findall(text):
        if bracket == "<":
            if CUDA_HEADER.match(included) and not is_under(path, "kernels/cuda"):
                yield f"includes <{included}>; CUDA headers belong to kernels/cuda"
            continue
        if included not in files:
            yield f'includes "{included}", which is not a path from the root'
            continue
        allowed = any(is_under(included, entry) for entry in [folder, *MAY_INCLUDE[folder]])
        for private in PRIVATE:
            if is_under(included, private) and not is_under(folder, private):
                allowed = allowed and folder in {"kernels", "tests"}
        if not allowed:
            yield f'{folder} may not include "{included}"'


def check_file(path, text, files):
    num_lines = text.count("\n")
    is_attention = path.startswith("kernels/") and "attention" in pathlib.Path(path).name
    limit = MAX_ATTENTION_LINES if is_attention else MAX_LINES
    if num_lines > limit:
        yield f"has {num_lines} lines, more than {limit}"
    if path.endswith(".py"):
        return
    yield from check_includes(path, text, files)
    if CUDA_MEMORY.search(text) and not path.startswith("kernels/cuda/device/memory."):
        yield "calls cudaMalloc or cudaFree; only kernels/cuda/device/memory may"
    if ENVIRONMENT.search(text) and not is_under(path, "apps") and not is_under(path, "tests"):
        yield "reads the environment; only apps may"


def check_tree(root):
    files = {}
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix in SUFFIXES and folder_of(path) is not None:
            files[path] = file.read_text()
    return [f"{path}: {problem}" for path, text in files.items()
            for problem in check_file(path, text, files)]


def self_test():
    """Each line of `violations` alone must be caught, and the tree without them must pass."""
    clean = {
        "apps/main.cpp": '#include "engine/engine.h"\nauto home = getenv("HOME");\n',
        "apps/options/common_options.h": "",
        "engine/benchmark/case.h": '#include "kernels/standard_attention.h"\n',
        "kernels/standard_attention.h": "",
        "engine/engine.h": '#include "kernels/backend.h"\n#include "model_loaders/checkpoint.h"\n',
        "kernels/backend.h": '#include "kernels/tensor/tensor.h"\n',
        "kernels/cpu/backend.h": '#include "kernels/backend.h"\n',
        "kernels/cuda/device/memory.cpp": "#include <cuda_runtime.h>\nvoid f() { cudaFree(0); }\n",
        "kernels/cuda/backend.h": "#include <cublasLt.h>\n",
        "kernels/cuda/decode_step/plan.h": '#include "kernels/cuda/primitives/mma.cuh"\n',
        "kernels/cuda/linear/plan.h": '#include "kernels/cuda/primitives/mma.cuh"\n',
        "kernels/cuda/primitives/mma.cuh": "",
        "kernels/cuda/attention.cu": "\n" * MAX_ATTENTION_LINES,
        "kernels/tensor/tensor.h": "#include <cstdint>\n",
        "model_loaders/checkpoint.h": '#include "kernels/tensor/tensor.h"\n',
        "tests/kernels/cpu_test.cpp": '#include "kernels/cpu/backend.h"\n',
    }
    violations = [
        ("apps/main.cpp", '#include "kernels/backend.h"\n'),
        ("engine/engine.h", '#include "apps/options/common_options.h"\n'),
        ("engine/engine.h", '#include "engine.h"\n'),
        ("engine/engine.h", '#include "kernels/standard_attention.h"\n'),
        ("engine/engine.h", '#include "kernels/cpu/backend.h"\n'),
        ("engine/engine.h", "#include <cuda_runtime.h>\n"),
        ("engine/engine.h", 'auto home = std::getenv("HOME");\n'),
        ("engine/engine.h", "\n" * MAX_LINES),
        ("kernels/backend.h", '#include "engine/engine.h"\n'),
        ("kernels/backend.h", "#include <cuda_bf16.h>\n"),
        ("kernels/cpu/backend.h", '#include "kernels/cuda/backend.h"\n'),
        ("kernels/cpu/backend.h", '#include "kernels/cuda/linear/plan.h"\n'),
        ("kernels/cuda/linear/plan.h", '#include "kernels/cuda/decode_step/plan.h"\n'),
        ("kernels/cuda/primitives/mma.cuh", '#include "kernels/cuda/linear/plan.h"\n'),
        ("kernels/cuda/decode_step/plan.h", '#include "kernels/cuda/linear/plan.h"\n'),
        ("kernels/cuda/backend.h", "void* p = cudaMallocAsync(1);\n"),
        ("kernels/cuda/backend.h", '#include "../backend.h"\n'),
        ("kernels/cuda/attention.cu", "\n"),
        ("kernels/tensor/tensor.h", '#include "kernels/backend.h"\n'),
        ("model_loaders/checkpoint.h", '#include "kernels/backend.h"\n'),
        ("weights/train.py", "\n" * (MAX_LINES + 1)),
    ]
    failures = 0
    for victim, line in [(None, ""), *violations]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            extra = {} if victim is None else {victim: clean.get(victim, "") + line}
            for path, text in (clean | extra).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            problems = check_tree(root)
        if [problem.split(":")[0] for problem in problems] != ([victim] if victim else []):
            print(f"{victim} with {line[:60]!r}: found {problems}")
            failures += 1
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "no rule is broken")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
