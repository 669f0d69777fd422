"""Draws what a terminal shows as an SVG."""

import html

import pyte

COLORS = {"default": "#d6d6d6", "black": "#5c5c5c", "red": "#ef6b73", "green": "#8ccf7e", "brown": "#e5c76b",
          "blue": "#67b0e8", "magenta": "#c47fd5", "cyan": "#6cbfbf", "white": "#f0f0f0"}
BACKGROUND = "#16191d"
CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 18, 14


def color_of(name):
    return COLORS.get(name.removeprefix("bright"), f"#{name}" if len(name) == 6 else COLORS["default"])


def runs_of(line, columns):
    """Neighbouring cells of one look: (column, text, cell)."""
    runs = []
    for column in range(columns):
        cell = line[column]
        looks = (cell.fg, cell.bg, cell.bold, cell.reverse)
        if runs and runs[-1][3] == looks:
            runs[-1][1].append(cell.data)
        else:
            runs.append((column, [cell.data], cell, looks))
    return [(column, "".join(text), cell) for column, text, cell, _ in runs]


def draw(screen, rows):
    """The first rows of a pyte.Screen."""
    width = screen.columns * CELL_WIDTH + 2 * MARGIN
    height = rows * LINE_HEIGHT + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
             'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
             f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>']
    for row in range(rows):
        y = MARGIN + row * LINE_HEIGHT
        for column, text, cell in runs_of(screen.buffer[row], screen.columns):
            foreground, background = color_of(cell.fg), None if cell.bg == "default" else color_of(cell.bg)
            if cell.reverse:
                foreground, background = background or BACKGROUND, foreground
            x = MARGIN + column * CELL_WIDTH
            if background:
                parts.append(f'<rect x="{x:g}" y="{y}" width="{len(text) * CELL_WIDTH:g}" height="{LINE_HEIGHT}" '
                             f'fill="{background}"/>')
            if text.strip():
                weight = ' font-weight="bold"' if cell.bold else ""
                parts.append(f'<text x="{x:g}" y="{y + 13}" fill="{foreground}" xml:space="preserve" '
                             f'textLength="{len(text.rstrip()) * CELL_WIDTH:g}"{weight}>{html.escape(text.rstrip())}</text>')
    return "\n".join([*parts, "</svg>", ""])


class Terminal:
    """Takes what a program writes."""

    def __init__(self, columns, lines):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)

    def feed(self, data):
        self.stream.feed(data.replace(b"\n", b"\r\n").replace(b"\r\r\n", b"\r\n"))

    def used_rows(self):
        used = [row for row, text in enumerate(self.screen.display) if text.strip()]
        return used[-1] + 1 if used else 1

    def svg(self):
        return draw(self.screen, self.used_rows())
