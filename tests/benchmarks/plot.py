#!/usr/bin/env python3
"""Draws the README's comparison from tests/benchmarks/results.json as an SVG, standard library only.

The file holds one entry per measurement: {"title", "unit", "bars": [[name, value], ...]}; the first
bar is tessera's. Bars of one measurement share a scale that starts at zero.
"""

import argparse
import html
import json
import pathlib

BAR_HEIGHT, GAP, LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH = 22, 6, 170, 420, 130
OURS, THEIRS, INK, PAPER = "#1f6feb", "#b8bec6", "#24292f", "#ffffff"


def text(x, y, content, size=13, weight="normal", anchor="start"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}" fill="{INK}">{html.escape(content)}</text>')


def draw(groups):
    parts, y = [], 16
    for group in groups:
        parts.append(text(0, y + 12, f'{group["title"]} ({group["unit"]})', 14, "bold"))
        y += 24
        largest = max(value for _, value in group["bars"])
        for index, (name, value) in enumerate(group["bars"]):
            width = BAR_WIDTH * value / largest
            parts.append(text(LABEL_WIDTH - 8, y + 16, name, anchor="end"))
            parts.append(f'<rect x="{LABEL_WIDTH}" y="{y}" width="{width:.1f}" '
                         f'height="{BAR_HEIGHT}" fill="{OURS if index == 0 else THEIRS}"/>')
            parts.append(text(LABEL_WIDTH + width + 8, y + 16, f"{value:,.0f}"))
            y += BAR_HEIGHT + GAP
        y += 14
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'viewBox="0 0 {width} {y}" font-family="sans-serif">'
            f'<rect width="{width}" height="{y}" fill="{PAPER}"/>' + "".join(parts) + "</svg>\n")


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=here / "results.json")
    parser.add_argument("--output", type=pathlib.Path, default=here / "comparison.svg")
    arguments = parser.parse_args()
    arguments.output.write_text(draw(json.loads(arguments.results.read_text())))


if __name__ == "__main__":
    main()
