#!/usr/bin/env python3
"""Installs a build to a folder of its own, builds small programs against it, compares answers.

    run.py BUILD --cmake CMAKE --model DIR

The programs ask find_package for tessera and see nothing of this source tree; their answers must
be those of the installed command. README.md shows one of them, word for word.
"""

import argparse
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
PROMPT = "Once upon a time"
QUESTIONS = ["Who are you?", "What is 17 + 25?", "Tell me a story about a fox."]
TIMEOUT_SECONDS = 240


def output_of(*command):
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_SECONDS)
    if process.returncode != 0:
        raise SystemExit(f"{process.stdout}{command[0]} ended with {process.returncode}")
    return process.stdout


def check_many_questions(program, command, model):
    source = (HERE / "many_questions.cpp").read_text()
    if f"```cpp\n{source}```" not in (HERE.parents[1] / "README.md").read_text():
        raise SystemExit("README.md does not show many_questions.cpp as it is")
    answers = dict(line.split("\t", 1) for line in output_of(program, model, *QUESTIONS).splitlines())
    for question in QUESTIONS:
        expected = output_of(command, "generate", "-q", "-m", model, "--temp", "0", "-n", "64", "-p", question)
        if answers[question].split() != expected.split():
            raise SystemExit(f"{question}: the program answered {answers[question]!r}, the command {expected!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        prefix, build = pathlib.Path(scratch, "prefix"), pathlib.Path(scratch, "build")
        output_of(options.cmake, "--install", options.build, "--prefix", prefix)
        output_of(options.cmake, "-G", "Ninja", "-S", HERE, "-B", build,
                  f"-DCMAKE_PREFIX_PATH={prefix}")
        output_of(options.cmake, "--build", build)
        answer = output_of(build / "uses_tessera", options.model, PROMPT)
        expected = output_of(prefix / "bin" / "tessera", "generate", "-q", "--device", "cpu", "--raw",
                             "-m", options.model, "-c", "128", "--temp", "0", "-n", "8", "-p", PROMPT)
        check_many_questions(build / "many_questions", prefix / "bin" / "tessera", options.model)
    if not answer.strip() or answer.strip() != expected.strip():
        raise SystemExit(f"the program answered {answer!r}, the command {expected!r}")
    print(f"both answered {answer!r}")


if __name__ == "__main__":
    main()
