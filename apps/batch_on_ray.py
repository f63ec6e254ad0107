#!/usr/bin/env python3
"""Answers one file of requests on a Ray cluster: a task for each shard, with a GPU of its own.

    batch_on_ray.py --shards 16 -- -m /shared/model -i /shared/in.jsonl -o /shared/out.jsonl -n 256

What follows -- are arguments of `tessera batch`. Model, input and output lie where every node sees
them under the same path. Each task runs `tessera batch --shard I/N --resume` and writes
OUTPUT.shard-I-of-N; one that fails, or whose node is lost, is tried again and goes on from there.
All draw with one seed. When all have ended, their outputs become OUTPUT. Ctrl-C lets the answers
that have begun be finished; the same command with --resume then does the rest.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time

EXIT_USAGE = 2
ITEM_ERRORS = 3  # a batch some of whose requests cannot be answered
PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 5.0
SEED_BITS = 32  # as many as those that tessera chooses


class ShardFailed(Exception):
    """The run of a shard ended early: another may go on from there."""


class ShardRefused(Exception):
    """The run of a shard was told something that no other run would accept."""


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Answers one file of requests on a Ray cluster.",
        usage="%(prog)s [options] -- -m MODEL -i INPUT -o OUTPUT [flags of tessera batch]")
    parser.add_argument("--shards", type=int, help="tasks (one for each GPU of the cluster)")
    parser.add_argument("--gpus-per-shard", type=float, default=1.0, help="0 for processors (1)")
    parser.add_argument("--cpus-per-shard", type=float, default=1.0, help="processors (1)")
    parser.add_argument("--retries", type=int, default=3, help="of each shard (3)")
    parser.add_argument("--address", help="of the cluster (where RAY_ADDRESS says, or this host)")
    parser.add_argument("--tessera", default="tessera", help="the command, as every node finds it")
    parser.add_argument("--resume", action="store_true", help="go on with what is there")
    parser.add_argument("batch", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.batch = [word for word in arguments.batch if word != "--"]
    files = argparse.ArgumentParser(add_help=False)
    files.add_argument("-i", "--input-file", "--input", dest="input", type=pathlib.Path)
    files.add_argument("-o", "--output-file", "--output", dest="output", type=pathlib.Path)
    files.add_argument("-s", "--seed", dest="seed")
    named, arguments.flags = files.parse_known_args(arguments.batch)
    if not named.input or not named.output:
        parser.error("name files with -i and -o behind --")
    arguments.input, arguments.output = named.input.resolve(), named.output.resolve()
    arguments.seed = named.seed
    return arguments


# --- a shard, on whichever node ---------------------------------------------------------------


def shard_path(output, index, count):
    return pathlib.Path(f"{output}.shard-{index}-of-{count}")


def shard_command(arguments, index, count):
    return [arguments.tessera, "batch", *arguments.flags, "-i", str(arguments.input),
            "-o", str(shard_path(arguments.output, index, count)), "--seed", str(arguments.seed),
            "--shard", f"{index}/{count}", "--resume", "--quiet"]  # fmt: skip


def set_up_run():
    """In the process that becomes a run. A worker that is killed takes its run with it, since two
    runs cannot share an output; and Ray's workers hold SIGINT back, which the run must not."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def run_shard(command):
    """Returns whether the shard is done; False after an interrupt."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               preexec_fn=set_up_run)  # fmt: skip
    interrupted = False
    while process.poll() is None:
        try:
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(signal.SIGINT)
    if process.returncode in (0, ITEM_ERRORS):
        return True
    if interrupted:
        return False
    problem = f"exit code {process.returncode}: {process.stderr.read().strip()}"
    raise (ShardRefused if process.returncode == EXIT_USAGE else ShardFailed)(problem)


# --- all of them --------------------------------------------------------------------------------


class Output:
    """The output of a shard while it grows: whole lines, and those that are errors."""

    def __init__(self, path):
        self.path = path
        self.inode, self.read_bytes, self.done, self.errors = None, 0, 0, 0

    def update(self):
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self.inode or status.st_size < self.read_bytes:  # begun anew
                self.inode, self.read_bytes, self.done, self.errors = status.st_ino, 0, 0, 0
            file.seek(self.read_bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read_bytes += len(line)
                self.done += 1
                self.errors += not line.endswith(b'"error":null}\n')


class Progress:
    """How far the shards have come together."""

    def __init__(self, input_path, paths):
        with open(input_path, "rb") as file:
            self.total = sum(1 for line in file if line.strip())
        self.outputs = [Output(path) for path in paths]
        self.began = time.monotonic()
        self.done_before = self.count()[0]

    def count(self):
        for output in self.outputs:
            output.update()
        return (sum(output.done for output in self.outputs),
                sum(output.errors for output in self.outputs))  # fmt: skip

    def line(self):
        done, errors = self.count()
        seconds = time.monotonic() - self.began
        speed = (done - self.done_before) / seconds if seconds > 0 else 0
        rest = f"{(self.total - done) / speed:.0f} s" if speed > 0 else "?"
        return f"batch: {done}/{self.total} requests, {errors} errors, ETA {rest}"


def manifest_path(output):
    return pathlib.Path(f"{output}.manifest.json")


def read_settings(output):
    """What the output's manifest tells; None where there is none, or the file is not one."""
    try:
        settings = json.loads(manifest_path(output).read_text())["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return settings if isinstance(settings, dict) else None


def choose_seed(outputs):
    """That of the shards that are gone on with, or a random one."""
    for settings in filter(None, map(read_settings, outputs)):
        if isinstance(settings.get("seed"), int):
            return settings["seed"]
    return random.SystemRandom().getrandbits(SEED_BITS)


@contextlib.contextmanager
def replacement(path):
    """A file that becomes `path`, as a whole and durable, when all of it is written."""
    new = pathlib.Path(f"{path}.tmp.{os.getpid()}")
    try:
        with open(new, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def merge(outputs, output):
    """Makes the outputs of all shards one, as a whole, and removes them."""
    with replacement(output) as merged:
        for path in outputs:
            with open(path, "rb") as shard:
                shutil.copyfileobj(shard, merged)
        # Before the answers are in place: without it they could not be resumed.
        write_manifest(outputs, output)
    for path in outputs:
        path.unlink(missing_ok=True)
        manifest_path(path).unlink(missing_ok=True)


def write_manifest(outputs, output):
    """That of any shard, as one of the whole. A shard of which no line was a request has none."""
    for settings in filter(None, map(read_settings, outputs)):
        with replacement(manifest_path(output)) as manifest:
            document = {"settings": {**settings, "shard": None}}
            manifest.write(json.dumps(document, indent=2).encode() + b"\n")
        return


def require_fresh_or_own_shards(arguments, outputs):
    output, manifest = arguments.output, manifest_path(arguments.output)
    if output.exists() and output.stat().st_size > 0:
        sys.exit(f"error: {output} exists\nhint: name another output, or remove it")
    if manifest.exists() and not read_settings(output):
        sys.exit(f"error: {manifest} is not the manifest of a batch\nhint: name another output")
    for path in sorted(output.parent.glob(output.name + ".shard-*-of-*")):
        if path.suffix == ".json" or path.stat().st_size == 0:  # left before it began
            continue
        if not arguments.resume:
            sys.exit(f"error: {path} exists\nhint: --resume goes on with it")
        if path not in outputs:
            sys.exit(f"error: {path} is of a run with another number of shards than {len(outputs)}")


def start_tasks(ray, arguments, count):
    task = ray.remote(num_gpus=arguments.gpus_per_shard, num_cpus=arguments.cpus_per_shard,
                      max_retries=arguments.retries, retry_exceptions=[ShardFailed])(run_shard)
    return {task.remote(shard_command(arguments, index, count)): index for index in range(count)}


def wait_for(ray, tasks, progress):
    """Tells progress until all tasks have ended. Returns what became of each shard that failed, and
    whether all others are done."""
    failures, all_done = {}, True
    waiting, told = dict(tasks), time.monotonic()
    interrupts = 0
    while waiting:
        try:
            ended, _ = ray.wait(list(waiting), timeout=POLL_SECONDS)
            for reference in ended:
                index = waiting.pop(reference)
                try:
                    all_done = ray.get(reference) and all_done
                except ray.exceptions.TaskCancelledError:
                    all_done = False
                except Exception as error:
                    failures[index] = str(getattr(error, "cause", None) or error)
                    print(f"error: shard {index}: {failures[index]}", file=sys.stderr)
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                print(progress.line(), file=sys.stderr)
        except KeyboardInterrupt:
            interrupts += 1
            for reference in waiting:
                ray.cancel(reference, force=interrupts > 1)
            print("interrupted: requests in flight will be finished, Ctrl-C again stops now",
                  file=sys.stderr)  # fmt: skip
    return failures, all_done


def main():
    arguments = parse_arguments()
    import ray

    ray.init(address=arguments.address, log_to_driver=False, include_dashboard=False,
             logging_level="ERROR")  # fmt: skip
    count = arguments.shards or max(1, int(ray.cluster_resources().get("GPU", 1)))
    outputs = [shard_path(arguments.output, index, count) for index in range(count)]
    require_fresh_or_own_shards(arguments, outputs)
    arguments.seed = arguments.seed or choose_seed(outputs)
    progress = Progress(arguments.input, outputs)
    failures, all_done = wait_for(ray, start_tasks(ray, arguments, count), progress)
    done, errors = progress.count()
    print(progress.line(), file=sys.stderr)
    if failures or not all_done:
        command = [word for word in sys.argv if word != "--resume"]
        command.insert(1, "--resume")
        print(f"the rest with: {shlex.join(command)}", file=sys.stderr)
        sys.exit(1 if failures else 128 + signal.SIGINT)
    merge(outputs, arguments.output)
    sys.exit(ITEM_ERRORS if errors else 0)


if __name__ == "__main__":
    main()
