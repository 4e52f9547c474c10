"""Tables: for the terminal and, as Markdown, for the documents."""

import json

from .stage import ROOT
from .works import WORKS

BEGIN, END = "<!-- bench/run --publish: begin -->", "<!-- bench/run --publish: end -->"


def number(value, digits=2):
    return "–" if value is None else f"{value:,.{digits}f}"


def ratio(row):
    return "–" if row.get("ratio") is None else f"{row['ratio']:.2f} × {row['base']}"


TIMED = [("p50 ms", lambda r: number(r.get("p50_ms"))), ("p90 ms", lambda r: number(r.get("p90_ms"))),
         ("p99 ms", lambda r: number(r.get("p99_ms"))), ("ratio", ratio), ("runs", lambda r: str(r["runs"]))]
LOADED = [("a second", lambda r: number(r.get("per_second"), 0)), ("p50 ms", lambda r: number(r.get("p50_ms"))),
          ("p99 ms", lambda r: number(r.get("p99_ms"))), ("p99/p50", lambda r: number(r.get("p99_over_p50"), 1)),
          ("CPU ms", lambda r: number(r.get("cpu_ms"))), ("machine's", lambda r: number(r.get("machine_cpu_ms"))),
          ("ratio", ratio)]
ALIVE = [("PSS KB each", lambda r: number(r.get("pss_kb"), 0)), ("processes each", lambda r: number(r.get("processes_each"), 1)),
         ("system KB each", lambda r: number(r.get("system_kb"), 0)), ("ratio", ratio), ("alive", lambda r: str(r["runs"]))]


def columns(work, rows):
    chosen = {"throughput": LOADED, "live": ALIVE}.get(work, TIMED)
    if any(row.get("instructions") for row in rows.values()):
        chosen = [*chosen, ("instructions", lambda r: number(r.get("instructions"), 0))]
    return chosen


def order(work, rows):
    """Best first; those that did not take part last."""
    key = {"throughput": "per_second", "live": "pss_kb"}.get(work, "p50_ms")
    sign = -1 if work == "throughput" else 1
    return sorted(rows, key=lambda name: ("skipped" in rows[name], sign * (rows[name].get(key) or 0)))


def tables(result):
    """(title, header, lines) of every table of one identity; a line is its cells, or a name and why it was skipped."""
    for work in WORKS:
        rows = result["rows"].get(work.name)
        if not rows:
            continue
        chosen = columns(work.name, rows)
        lines = []
        for name in order(work.name, rows):
            row = rows[name]
            lines.append([name, row["skipped"]] if "skipped" in row else [name, *[cell(row) for _, cell in chosen]])
        yield f"{work.name}: {work.title}", ["", *[title for title, _ in chosen]], lines


def goal_lines(result):
    for goal in result["goals"]:
        digits = 0 if goal["unit"] == "KB" else 2
        bound = f"{'≤' if goal['at_most'] else '≥'} {goal['limit']:g} {goal['unit']}"
        measured = "–" if goal["measured"] is None else f"{goal['measured']:.{digits}f} {goal['unit']}"
        yield [goal["goal"], bound, measured, goal["state"]]


def terminal(identity, result, color):
    """The tables of one identity as text."""
    bold, dim, off = ("\033[1m", "\033[2m", "\033[0m") if color else ("", "", "")
    text = []
    for title, header, lines in tables(result):
        full = [header, *[line for line in lines if len(line) == len(header)]]
        widths = [max(len(line[i]) for line in full + [[line[0]] + [""] * (len(header) - 1) for line in lines])
                  for i in range(len(header))]
        text.append(f"\n{bold}{identity} · {title}{off}")
        for line in [header, *lines]:
            if len(line) == len(header):
                ours = bold if line[0].startswith(("belljar", "library")) else ""
                cells = [line[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]]
                text.append(f"  {ours}{'  '.join(cells)}{off if ours else ''}")
            else:
                text.append(f"  {dim}{line[0].ljust(widths[0])}  skipped: {line[1]}{off}")
    text.append(f"\n{bold}{identity} · goals{off}")
    for goal, bound, measured, state in goal_lines(result):
        text.append(f"  {state:12}  {measured:>9}  {bound:8}  {goal}")
    return "\n".join(text)


def markdown(report):
    machine = report["machine"]
    text = [f"Measured on {report['date']} with {report['version']}: {machine['cpu']}, {machine['cores']} cores, Linux "
            f"{machine['kernel']}" + (", `--quick`." if report["quick"] else "."), ""]
    if report["no_instructions"]:
        text += [f"No instruction counts: {report['no_instructions']}.", ""]
    for identity, result in report["identities"].items():
        text += [f"### As {'root' if identity == 'root' else 'an unprivileged user'}", ""]
        text += ["| goal | bound | measured | |", "|---|---|---|---|", *[f"| {' | '.join(line)} |" for line in goal_lines(result)], ""]
        for title, header, lines in tables(result):
            text += [f"**{title}**", "", f"| {' | '.join(header)} |", "|---" + "|---:" * (len(header) - 1) + "|"]
            for line in lines:
                skipped = len(line) != len(header)
                cells = [line[0], "skipped: " + line[1].replace("|", "/"), *[""] * (len(header) - 2)] if skipped else line
                text.append(f"| {' | '.join(cells)} |")
            text.append("")
    return "\n".join(text)


def publish(report, chart):
    """Puts the tables between the markers of docs/performance.md, and the chart beside it."""
    page = ROOT / "docs/performance.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(report)}{END}{after}")
    (ROOT / "docs/performance.svg").write_text(chart)


def write_json(report, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1, ensure_ascii=False)
        file.write("\n")
