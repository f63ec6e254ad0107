"""What must hold of a run of which one call, or every call from one on, has failed."""

import errno
import json
import re

EXIT_CODES = {0, 1, 2, 3}
CLOSED_PIPE = 141
# An error names the file, or says what there is too little of.
NAMED = re.compile(r"error: (/\S|\w+\.jsonl?\b|standard (in|out)put|out of memory$|cannot start |"
                   r"the system refused \d+ bytes for )")  # fmt: skip


def problems(scenario, point, result, expected):
    """What is wrong with `result`, as a list of phrases. `expected`: the undisturbed run."""
    if result.code is None:
        return ["hang"]
    if result.code < 0:
        return [f"killed by signal {-result.code}"]
    found = _of_exit_code(point, result, expected) + _of_messages(point, result, expected)
    if result.code == expected.code and result.out != expected.out:
        found.append("success with another output")
    if scenario.is_batch:
        found += _of_answers(scenario, result, expected)
    return found


def _of_exit_code(point, result, expected):
    has_closed_pipe = point.call == "write" and point.error == errno.EPIPE
    if result.code not in EXIT_CODES | ({CLOSED_PIPE} if has_closed_pipe else set()):
        return [f"exit code {result.code}"]
    if point.is_memory and result.code not in (expected.code, 1):
        return [f"out of memory with exit code {result.code}"]
    return []


def _of_messages(point, result, expected):
    said_anyway = expected.err.splitlines()
    lines = [line for line in result.err.splitlines() if line not in said_anyway]
    if not lines:
        # A message that cannot be written is missed by nobody.
        has_to_say = result.code in (1, 2) and point.call != "write"
        return ["no message"] if has_to_say else []
    if len(lines) > 2 or (len(lines) == 2 and not lines[1].startswith("hint: ")):
        return ["more than an error and a hint"]
    return [] if NAMED.match(lines[0]) else ["an error that names nothing"]


def _of_answers(scenario, result, expected):
    """Every line is whole and one that an undisturbed run writes, none is there twice."""
    if scenario.resumes and result.code != expected.code:
        return []  # what it found may still be there
    if not result.answers.endswith(b"\n") and result.answers:
        return ["a torn line"]
    lines = result.answers.splitlines()
    wanted = set(expected.answers.splitlines())
    found = []
    if len(set(lines)) != len(lines):
        found.append("an answer twice")
    if not set(lines) <= wanted:
        found.append("another answer")
    if result.code == expected.code and set(lines) != wanted:
        found.append("success without all answers")
    return found


def problems_after_resume(result, expected):
    """The run that goes on where the disturbed one ended gives what one undisturbed run gives."""
    if result.code != expected.code:
        return [f"then --resume exits with {result.code}: {result.err.strip()}"]
    if _by_id(result.answers) != _by_id(expected.answers):
        return ["then --resume gives other answers"]
    return []


def _by_id(answers):
    return sorted(answers.splitlines(), key=lambda line: json.loads(line)["id"])
