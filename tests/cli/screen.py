"""A terminal's screen: what a person sees after the bytes that a program wrote."""

import re
import unicodedata

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")
UNFINISHED = re.compile(r"\x1b(\[\??[0-9;]*)?$")


def character_width(character):
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or character == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """Rows of cells, each a character with its combining marks; "" follows a wide one. Rows that the
    terminal itself continued are laid out again when the size changes, as most terminals do.

    Knows what tessera may use; any other sequence is an error.
    """

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = [[]]  # those scrolled out of sight too
        self.continued = [False]  # whether the next row goes on with this one
        self.row = self.column = 0
        self.marks_pastes = False
        self._top = 0  # the first row in sight
        self._waiting = ""

    # --- what is seen ---------------------------------------------------------------------------

    def text(self):
        """All rows, those scrolled out of sight too."""
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip("\n")

    def visible(self):
        return ["".join(line).rstrip() for line in self.lines[self._top:]]

    def current_line(self):
        return "".join(self.lines[self.row]).rstrip()

    # --- what is written ------------------------------------------------------------------------

    def feed(self, text):
        text = self._waiting + text
        unfinished = UNFINISHED.search(text)
        self._waiting = unfinished.group() if unfinished else ""
        text = text[: len(text) - len(self._waiting)]
        position = 0
        while position < len(text):
            sequence = SEQUENCE.match(text, position)
            if sequence:
                self._control(*sequence.groups())
                position = sequence.end()
            else:
                self._put(text[position])
                position += 1

    def resize(self, rows, columns):
        self.rows = rows
        if columns == self.columns:
            return
        lines, continued, cursor = [], [], (0, 0)
        start = 0
        for end, goes_on in enumerate(self.continued):
            if goes_on:
                continue
            cells = [cell for line in self.lines[start : end + 1] for cell in line]
            at = None
            if start <= self.row <= end:
                at = sum(len(line) for line in self.lines[start : self.row]) + self.column
            for piece in range(0, max(len(cells), 1), columns):
                last = piece + columns >= len(cells)
                if at is not None and (piece <= at < piece + columns or last and piece <= at):
                    cursor = (len(lines), min(at - piece, columns - 1))
                lines.append(cells[piece : piece + columns])
                continued.append(not last)
            start = end + 1
        self.columns, self.lines, self.continued = columns, lines, continued
        self.row, self.column = cursor
        self._top = max(len(self.lines) - self.rows, 0)

    # --------------------------------------------------------------------------------------------

    def _control(self, private, numbers, final):
        count = int(numbers.split(";")[0] or 0)
        if private:
            assert final in "hl" and numbers == "2004", f"ESC[?{numbers}{final}"
            self.marks_pastes = final == "h"
        elif final == "A":
            self.row = max(self.row - max(count, 1), self._top)
        elif final == "C":
            self.column = min(self.column + max(count, 1), self.columns - 1)
        elif final == "H":
            self.row, self.column = self._top, 0
        elif final == "J" and count == 0:
            self._clear_line_end()
            del self.lines[self.row + 1 :], self.continued[self.row + 1 :]
        elif final == "J" and count == 2:
            for row in range(self._top, len(self.lines)):
                self.lines[row], self.continued[row] = [], False
        elif final == "K" and count == 0:
            self._clear_line_end()
        else:
            assert final == "m", f"ESC[{numbers}{final}"

    def _clear_line_end(self):
        del self.lines[self.row][self.column :]
        self.continued[self.row] = False

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._next_row()
        elif character == "\b":  # how the kernel echoes a deletion
            self.column = max(self.column - 1, 0)
        elif character == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        else:
            assert character >= " " and character != "\x7f", f"unexpected {character!r}"
            self._print(character)

    def _print(self, character):
        width = character_width(character)
        line = self.lines[self.row]
        if width == 0:
            at = min(self.column, len(line)) - 1
            while at > 0 and line[at] == "":
                at -= 1
            line[at] += character
            return
        if self.column + width > self.columns:
            self.continued[self.row] = True
            self._next_row()
            self.column = 0
            line = self.lines[self.row]
        line += [" "] * (self.column - len(line))
        line[self.column : self.column + width] = [character] + [""] * (width - 1)
        self.column += width

    def _next_row(self):
        self.row += 1
        self._top = max(self._top, self.row - self.rows + 1)
        if self.row == len(self.lines):
            self.lines.append([])
            self.continued.append(False)
