#!/usr/bin/env python3
"""Draws time and memory of attention against the context length, from compare_attention.py --json.

Two panels with logarithmic axes: tessera and standard attention, one sequence of each length (calls
of several short sequences are divided by their number). Standard library only.
"""

import argparse
import json
import math
import pathlib

from plot import INK, OURS, PAPER, text

PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP, BOTTOM, RIGHT = 250, 220, 70, 40, 100, 50, 120
THEIRS, GRID = "#8c959f", "#e3e6ea"
MIN_LENGTH, MAX_LENGTH = 1024, 32768


def read_points(report):
    """{"tessera" or "standard": [(length, seconds, bytes)]} of one sequence."""
    points = {"tessera": [], "standard": []}
    for case in report["cases"]:
        plain = case["kind"] == "prefill" and case["head_dim"] == 128 and case["causal"]
        if not plain or case["contiguous"] or not MIN_LENGTH <= case["length"] <= MAX_LENGTH:
            continue
        for name, series in points.items():
            timing = case.get(name, {})
            if "seconds" not in timing:
                continue
            # tessera's workspace is the same for one sequence as for many.
            sharers = 1 if name == "tessera" else case["batch"]
            series.append((case["length"], timing["seconds"]["median"] / case["batch"],
                           timing["scratch_bytes"] / sharers))
    return points


def short(value, units):
    """The value in the largest of `units`, [(size, name)], that leaves a number of 1 or more."""
    size, name = [unit for unit in units if value >= unit[0] * 0.999 or unit == units[0]][-1]
    number = value / size
    return f"{number:,.0f} {name}" if number >= 10 else f"{number:.3g} {name}"


def draw_panel(left, title, series, base, units):
    """series: {name: [(length, value)]}; ticks at powers of `base`."""
    values = [value for points in series.values() for _, value in points]
    low = math.floor(math.log(min(values), base))
    high = math.ceil(math.log(max(values), base))
    first, last = math.log2(MIN_LENGTH), math.log2(MAX_LENGTH)

    def x_of(length):
        return left + PANEL_WIDTH * (math.log2(length) - first) / (last - first)

    def y_of(value):
        return TOP + PANEL_HEIGHT * (1 - (math.log(value, base) - low) / (high - low))

    parts = [text(left, TOP - 16, title, 14, "bold")]
    for exponent in range(low, high + 1):
        y = y_of(base**exponent)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL_WIDTH}" y2="{y:.1f}" '
                     f'stroke="{GRID}"/>')
        parts.append(text(left - 6, round(y + 4, 1), short(base**exponent, units), 11,
                          anchor="end"))
    for exponent in range(int(first), int(last) + 1):
        x = round(x_of(2**exponent), 1)
        parts.append(text(x, TOP + PANEL_HEIGHT + 18, f"{2 ** exponent // 1024}k", 11,
                          anchor="middle"))
    parts.append(text(left + PANEL_WIDTH / 2, TOP + PANEL_HEIGHT + 38, "tokens", 11,
                      anchor="middle"))
    for name, points in series.items():
        color = OURS if name == "tessera" else THEIRS
        path = " ".join(f"{x_of(length):.1f},{y_of(value):.1f}" for length, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x_of(length):.1f}" cy="{y_of(value):.1f}" r="3" fill="{color}"/>'
                  for length, value in points]
        length, value = points[-1]
        parts.append(text(round(x_of(length) + 8, 1), round(y_of(value) - 10, 1), name, 12))
        parts.append(text(round(x_of(length) + 8, 1), round(y_of(value) + 4, 1),
                          short(value, units), 11))
    return parts


def draw(points):
    times = {name: [(length, seconds) for length, seconds, _ in series]
             for name, series in points.items()}
    sizes = {name: [(length, size) for length, _, size in series]
             for name, series in points.items()}
    parts = draw_panel(LEFT, "Time", times, 10,
                       [(1e-6, "us"), (1e-3, "ms"), (1.0, "s")])
    parts += draw_panel(LEFT + PANEL_WIDTH + GAP + RIGHT / 2, "Scratch memory", sizes, 8,
                        [(2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB")])
    width, height = LEFT + 2 * PANEL_WIDTH + GAP + int(RIGHT * 1.25), TOP + PANEL_HEIGHT + BOTTOM
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" fill="{INK}">'
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>' + "".join(parts)
            + "</svg>\n")


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=here / "attention_results.json")
    parser.add_argument("--output", type=pathlib.Path, default=here / "attention.svg")
    arguments = parser.parse_args()
    points = read_points(json.loads(arguments.results.read_text()))
    arguments.output.write_text(draw(points))


if __name__ == "__main__":
    main()
