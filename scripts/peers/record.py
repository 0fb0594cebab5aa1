"""record.py: bench.json, in which scripts/bench keeps what it measured, and the picture of it.

    record.py draw FILE.json FILE.svg        draws how often flowlua is as fast as the best peer in each row

The file is a list of rows. A row has "part" (nets, eager, pipeline), "name" and "threads", which together with "processor" name it: the
same row measured again takes the old one's place; "unit" (images/s, or us where less is better); the figure of each engine under
"engines"; "best", the fastest of the others, and "ratio", how often flowlua is as fast as it; "commit" and "date". Rows of nets have
also each engine's peak memory in MB and, for one image at a time, the 99th percentile of its time in us.
"""
import datetime
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def processor():
    """The processor's name, and whether it has AVX-512, which decides more than the name does on a virtual machine."""
    with open("/proc/cpuinfo") as file:
        lines = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines())
    facts = {name.strip(): value.strip() for name, value in lines.items()}
    family = "family %s model %s" % (facts.get("cpu family", "?"), facts.get("model", "?"))
    return "%s, %s, %s" % (facts.get("model name", "unknown"), family, "AVX-512" if "avx512f" in facts.get("flags", "") else "no AVX-512")


def commit():
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def row(part, name, threads, unit, engines, less_is_better=False, **more):
    """`engines` maps each engine's name to its figure, flowlua's first."""
    own, *others = engines.items()
    best = (min if less_is_better else max)(others, key=lambda item: item[1], default=None)
    ratio = None
    if best:
        ratio = round(best[1] / own[1] if less_is_better else own[1] / best[1], 3)
    return dict(part=part, name=name, threads=threads, unit=unit, engines={name: round(figure, 3) for name, figure in engines.items()},
                best=best and best[0], ratio=ratio, **more)


def keep(path, rows):
    """Adds rows to the file, or does nothing without a path. The file is replaced as a whole, so that an interrupt leaves the old one."""
    if not path:
        return
    known = []
    if os.path.exists(path):
        with open(path) as file:
            known = json.load(file)
    here, now, at = processor(), datetime.date.today().isoformat(), commit()

    def key(entry):
        return entry["processor"], entry["part"], entry["name"], entry["threads"]

    table = {key(entry): entry for entry in known}
    for entry in rows:
        entry = dict(processor=here, **entry, commit=at, date=now)
        table[key(entry)] = entry
    with open(path + ".new", "w") as file:
        json.dump(sorted(table.values(), key=key), file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


# ---- the picture -------------------------------------------------------------------------------------------

LINE, LABEL, PLOT, LEAST, MOST = 16, 330, 420, 0.25, 8          # pixels; ratios outside are cut


def across(ratio):
    """The place of a ratio on a logarithmic axis."""
    import math
    ratio = min(max(ratio, LEAST), MOST)
    return LABEL + PLOT * math.log(ratio / LEAST) / math.log(MOST / LEAST)


def text(x, y, words, more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, words)


def draw(rows):
    """An SVG with a group of bars for each processor: right of the line at 1 flowlua is faster."""
    parts, y = [], 0
    for name in sorted({entry["processor"] for entry in rows}):
        chosen = [entry for entry in rows if entry["processor"] == name and entry["ratio"]]
        y += 2 * LINE
        parts.append(text(4, y, name, 'font-weight="bold"'))
        top = y + LINE / 2
        for entry in sorted(chosen, key=lambda entry: (entry["part"], -entry["ratio"])):
            y += LINE
            ratio = entry["ratio"]
            first, last = sorted((across(1), across(ratio)))
            threads = "1 thread" if entry["threads"] == 1 else "%d threads" % entry["threads"]
            parts.append(text(LABEL - 6, y, "%s, %s" % (entry["name"], threads), 'text-anchor="end"'))
            parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>' % (
                first, y - LINE + 5, max(last - first, 1), LINE - 4, "#2a7fb8" if ratio >= 1 else "#d9823b"))
            parts.append(text(LABEL + PLOT + 8, y, "%.2f of %s" % (ratio, entry["best"])))
        for mark in (0.25, 0.5, 1, 2, 4, 8):
            parts.append('<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#888" stroke-width="%s"/>' % (
                across(mark), across(mark), top, y + 6, 1.5 if mark == 1 else 0.3))
            parts.append(text(across(mark), y + LINE + 4, "%gx" % mark, 'text-anchor="middle" fill="#666"'))
        y += LINE
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">\n'
            '<rect width="100%%" height="100%%" fill="white"/>\n%s\n</svg>\n' % (LABEL + PLOT + 150, y + 2 * LINE, "\n".join(parts)))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "draw":
        sys.exit("usage: record.py draw FILE.json FILE.svg")
    with open(sys.argv[2]) as file:
        picture = draw(json.load(file))
    with open(sys.argv[3], "w") as file:
        file.write(picture)
