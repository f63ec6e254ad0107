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
DEFINITIONS = [f"kernels/{name}" for name in [
    "attention_params.h", "backend_limits.h", "block_fields.h", "block_sizes.h", "block_spec.h",
    "cuda_status.h", "device.h", "fused_decoder.h", "fused_operations.h", "kernel_choice.h",
    "layer_weights.h", "operations.h", "read_ahead.h", "rope_params.h", "sampling_params.h", "tensor",
    "weight_matrix.h"]]
# Folder -> the files and folders it may include besides its own files. The longest entry that a
# file's path begins with is the one that counts.
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
       for folder in ["batch", "bench", "summarize"]},
    "apps/chat": ["apps/answer", "apps/line_editor", "apps/options", "apps/files",
                  "apps/terminal", "apps/process", "engine"],
    # Rooms, each above the next: benchmark, the public face, serving, model, text. Serving knows no
    # device, and the model no text: what they have in common is listed by name.
    "engine": ["engine/serving", "engine/model", "engine/text", "kernels/backend.h",
               *DEFINITIONS, "model_loaders"],
    "engine/serving": ["engine/model/drawn_token.h", "engine/model/page_pool.h",
                       "engine/model/sampling_params.h",
                       "engine/model/step_limits.h", "engine/model/step_runner.h",
                       "engine/model/token_chunk.h", "engine/text", "kernels/tensor/check.h",
                       "kernels/tensor/stopped.h"],
    "engine/model": ["engine/text/token_id.h", "kernels/backend.h", "kernels/layer_runner.h",
                     *DEFINITIONS, "model_loaders"],
    "engine/text": ["kernels/tensor/check.h", "kernels/tensor/checked_math.h", "model_loaders"],
    # Alone in knowing how devices are measured and the comparator: no model can run through it.
    "engine/benchmark": ["engine", "kernels/backend.h", "kernels/device_measurement.h",
                         "kernels/standard_attention.h", *DEFINITIONS],
    "kernels": ["kernels"],
    "kernels/cpu": ["kernels"],
    # Within CUDA: shared words at the bottom, operations beside each other, the decode step, which
    # holds attention and products of its own, on top.
    "kernels/cuda": ["kernels"],
    "kernels/cuda/primitives": ["kernels/block_spec.h", "kernels/tensor"],
    "kernels/cuda/device": ["kernels/cuda/primitives", *DEFINITIONS],
    **{f"kernels/cuda/{operation}": ["kernels/cuda/device", "kernels/cuda/primitives",
                                     *DEFINITIONS]
       for operation in ["transfer", "rows", "linear", "attention", "sampling"]},
    "kernels/cuda/attention/standard": ["kernels/cuda/device", "kernels/cuda/primitives",
                                        "kernels/standard_attention.h", "kernels/tensor"],
    "kernels/cuda/decode_step": ["kernels/cuda/attention/arguments.cuh",
                                 "kernels/cuda/attention/decode",
                                 "kernels/cuda/device", "kernels/cuda/primitives", *DEFINITIONS],
    "kernels/tensor": [],
    "model_loaders": ["kernels/block_spec.h", "kernels/tensor"],
    "tests": ["apps", "engine", "kernels", "model_loaders"],
    "weights": [],
}
# What kernels and the rooms above have in common: words, and a model's blocks as data. No memory and
# no device is a part of them.
SHARED_WORDS = ["kernels/block_spec.h", "kernels/tensor/check.h", "kernels/tensor/checked_math.h",
                "kernels/tensor/device_id.h", "kernels/tensor/dtype.h", "kernels/tensor/shape.h",
                "kernels/tensor/stopped.h"]
# Folder -> what none of its files may see, not even through others: folders and files, and of those
# the exceptions.
MAY_NOT_SEE = {
    "apps": (["kernels", "model_loaders/checkpoint.h"], SHARED_WORDS),
    "engine/serving": (["kernels", "model_loaders/checkpoint.h"], SHARED_WORDS),
    "engine/text": (["kernels", "model_loaders/checkpoint.h"], SHARED_WORDS),
}
# File -> how many headers of this project it may see, others' included.
MAX_SEEN = {"engine/model/transformer.cpp": 20}
# Seen only by themselves, by the files that lie directly in kernels, and by tests.
PRIVATE = {"kernels/cpu", "kernels/cuda"}
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py"}
MAX_LINES = 400
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
        allowed = folder_of(included) == folder or any(
            is_under(included, entry) for entry in MAY_INCLUDE[folder])
        for private in PRIVATE:
            if is_under(included, private) and not is_under(folder, private):
                allowed = allowed and folder in {"kernels", "tests"}
        if not allowed:
            yield f'{folder} may not include "{included}"'


def quoted_includes(path, files):
    return [included for bracket, included in INCLUDE.findall(files[path])
            if bracket == '"' and included in files]


def seen_files(path, files):
    """What `path` includes, also through others: each file with the one that includes it."""
    seen = {}
    to_read = [path]
    while to_read:
        reader = to_read.pop(0)
        for included in quoted_includes(reader, files):
            if included not in seen:
                seen[included] = reader
                to_read.append(included)
    return seen


def check_seen(path, files):
    rules = [MAY_NOT_SEE[entry] for entry in MAY_NOT_SEE if is_under(path, entry)]
    if not rules and path not in MAX_SEEN:
        return
    seen = seen_files(path, files)
    for hidden, exceptions in rules:
        for included, reader in seen.items():
            if included not in exceptions and any(is_under(included, entry) for entry in hidden):
                yield f'may not see "{included}", as it does through {reader}'
    if path in MAX_SEEN and len(seen) > MAX_SEEN[path]:
        yield f"sees {len(seen)} headers, more than {MAX_SEEN[path]}"


def check_file(path, text, files):
    num_lines = text.count("\n")
    if num_lines > MAX_LINES:
        yield f"has {num_lines} lines, more than {MAX_LINES}"
    if path.endswith(".py"):
        return
    yield from check_includes(path, text, files)
    yield from check_seen(path, files)
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
    """Each line of `violations` alone must be caught, and the tree without them must pass.

    A violation is the file it is planted in, the line, and whom to blame if that is another file.
    """
    clean = {
        "apps/main.cpp": '#include "engine/engine.h"\nauto home = getenv("HOME");\n',
        "apps/options/common_options.h": "",
        "engine/benchmark/case.h": '#include "kernels/standard_attention.h"\n',
        "kernels/device_measurement.h": "",
        "kernels/layer_runner.h": "",
        "kernels/standard_attention.h": "",
        "engine/engine.h": '#include "engine/serving/loop.h"\n#include "engine/options.h"\n',
        "engine/engine_impl.h": '#include "engine/engine.h"\n#include "kernels/backend.h"\n'
                                '#include "engine/model/runner.h"\n',
        "engine/options.h": '#include "kernels/tensor/dtype.h"\n',
        "engine/model/page_pool.h": "",
        "engine/model/runner.h": '#include "kernels/backend.h"\n#include "engine/text/token_id.h"\n'
                                 '#include "model_loaders/checkpoint.h"\n',
        "engine/model/transformer.cpp": "".join(
            f'#include "kernels/tensor/word_{i}.h"\n'
            for i in range(MAX_SEEN["engine/model/transformer.cpp"])),
        **{f"kernels/tensor/word_{i}.h": ""
           for i in range(MAX_SEEN["engine/model/transformer.cpp"])},
        "engine/serving/loop.h": '#include "engine/model/page_pool.h"\n'
                                 '#include "engine/text/token_id.h"\n',
        "engine/text/token_id.h": "",
        "engine/text/tokenizer.h": "",
        "kernels/tensor/dtype.h": "",
        "kernels/backend.h": '#include "kernels/tensor/tensor.h"\n',
        "kernels/cpu/backend.h": '#include "kernels/backend.h"\n',
        "kernels/cuda/device/memory.cpp": "#include <cuda_runtime.h>\nvoid f() { cudaFree(0); }\n",
        "kernels/cuda/backend.h": "#include <cublasLt.h>\n",
        "kernels/cuda/decode_step/plan.h": '#include "kernels/cuda/primitives/mma.cuh"\n',
        "kernels/cuda/linear/plan.h": '#include "kernels/cuda/primitives/mma.cuh"\n',
        "kernels/cuda/primitives/mma.cuh": "",
        "kernels/cuda/attention.cu": "\n" * MAX_LINES,
        "kernels/tensor/tensor.h": '#include <cstdint>\n#include "kernels/tensor/dtype.h"\n',
        "model_loaders/checkpoint.h": '#include "kernels/tensor/tensor.h"\n',
        "tests/kernels/cpu_test.cpp": '#include "kernels/cpu/backend.h"\n',
    }
    violations = [
        ("apps/main.cpp", '#include "kernels/backend.h"\n'),
        ("engine/engine.h", '#include "apps/options/common_options.h"\n'),
        ("engine/engine.h", '#include "engine/benchmark/case.h"\n'),
        ("engine/serving/loop.h", '#include "engine/engine.h"\n'),
        ("engine/serving/loop.h", '#include "engine/model/runner.h"\n'),
        ("engine/serving/loop.h", '#include "kernels/tensor/tensor.h"\n'),
        ("engine/model/runner.h", '#include "engine/options.h"\n'),
        ("engine/model/runner.h", '#include "engine/serving/loop.h"\n'),
        ("engine/model/runner.h", '#include "engine/text/tokenizer.h"\n'),
        ("engine/text/token_id.h", '#include "engine/model/page_pool.h"\n'),
        ("engine/text/token_id.h", '#include "kernels/tensor/tensor.h"\n'),
        ("engine/text/token_id.h", '#include "model_loaders/checkpoint.h"\n'),
        ("engine/options.h", '#include "kernels/backend.h"\n', "apps/main.cpp"),
        ("engine/options.h", '#include "kernels/tensor/tensor.h"\n', "apps/main.cpp"),
        ("engine/options.h", '#include "engine/model/runner.h"\n', "apps/main.cpp"),
        ("engine/engine.h", '#include "model_loaders/checkpoint.h"\n', "apps/main.cpp"),
        ("engine/model/page_pool.h", '#include "kernels/backend.h"\n', "engine/serving/loop.h"),
        ("engine/model/transformer.cpp", '#include "kernels/tensor/dtype.h"\n'),
        ("kernels/tensor/word_0.h", '#include "kernels/tensor/dtype.h"\n',
         "engine/model/transformer.cpp"),
        ("engine/engine.h", '#include "engine.h"\n'),
        ("engine/engine.h", '#include "kernels/standard_attention.h"\n'),
        ("engine/engine.h", '#include "kernels/device_measurement.h"\n'),
        ("engine/engine.h", '#include "kernels/layer_runner.h"\n'),
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
    for victim, line, *blamed in [(None, ""), *violations]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            extra = {} if victim is None else {victim: clean.get(victim, "") + line}
            for path, text in (clean | extra).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            problems = check_tree(root)
        expected = blamed or ([victim] if victim else [])
        found = {problem.split(":")[0] for problem in problems}
        if not found.issuperset(expected) or (found and not expected):
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
