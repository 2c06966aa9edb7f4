#!/usr/bin/env python3
"""Renders terminal output as proto-docs/picture.svg:

    target/release/assay tickets show ID | scripts/picture.py ID > proto-docs/picture.svg

The test of the README compares the picture with what the command prints.
"""

import html
import sys

# Lines with times and ids, which change, and unimportant ones.
LEFT_OUT = ("Imported", "Evaluation", "Conversation", "First answer", "Flags", "Scorer")
LEFT, TOP, LINE, LETTER = 24, 58, 19, 7.85
GREY, WHITE, ORANGE, GREEN, BLUE, RED = "#8b949e", "#e6edf3", "#ffa657", "#7ee787", "#a5d6ff", "#ff7b72"


def colour(line):
    if line.startswith("$ "):
        return GREY
    if line.startswith(("AXIS", "Resolution ")):
        return ORANGE
    if line.startswith("Charge"):
        return RED
    if line.startswith("    > "):
        return BLUE
    return GREEN if line.startswith("  ") and not line.startswith("    ") else WHITE


def main():
    shown = [line for line in sys.stdin.read().split("\n") if not line.startswith(LEFT_OUT)]
    lines = [f"$ assay tickets show {sys.argv[1]}", *"\n".join(shown).rstrip().split("\n")]
    width = max(980, round(2 * LEFT + LETTER * max(map(len, lines))))
    height = TOP + LINE * len(lines) + 6
    title = "What Assay says of one conversation: scores with reasons and quotes, and a disputed charge"
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">')
    print('<rect width="100%" height="100%" rx="10" fill="#0d1117"/>')
    for at, fill in ((22, "#ff5f56"), (42, "#ffbd2e"), (62, "#27c93f")):
        print(f'<circle cx="{at}" cy="22" r="6" fill="{fill}"/>')
    print('<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">')
    for number, line in enumerate(lines):
        if line.strip():
            text = html.escape(line).replace(" ", "&#160;")
            print(f'<text x="{LEFT}" y="{TOP + LINE * number}" fill="{colour(line)}">{text}</text>')
    print("</g></svg>")


if __name__ == "__main__":
    main()
