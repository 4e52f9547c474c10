"""The chart of README and docs: bars, drawn as plain SVG that follows the reader's light or dark theme."""

import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, BAR, GAP = 760, 130, 130, 16, 8
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #59636e }
  .axis { stroke: #d1d9e0; stroke-width: 1 }
  .peer { fill: #9aa7b4 } .floor { fill: #c9b27c } .ours { fill: #0a7d6c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9198a1 } .axis { stroke: #3d444d }
    .peer { fill: #57636f } .floor { fill: #8f7a45 } .ours { fill: #2bb39d }
  }
"""
FLOORS = ("posix_spawn", "clone")


def kind(name):
    return "ours" if name.startswith(("belljar", "library")) else "floor" if name in FLOORS else "peer"


def ticks(low, high):
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def label(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def panel(top, title, subtitle, values, unit):
    """One group of bars on a logarithmic scale: peers differ by factors of a thousand. Returns SVG and its height."""
    low, high = min(values.values()) / 1.6, max(values.values()) * 1.1
    span = WIDTH - LEFT - RIGHT

    def x(value):
        return LEFT + span * (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))

    parts = [f'<text class="title" x="0" y="{top + 16}">{escape(title)}</text>',
             f'<text class="quiet" x="0" y="{top + 35}">{escape(subtitle)}</text>']
    y = top + 52
    bottom = y + len(values) * (BAR + GAP)
    for tick in ticks(low, high):
        parts.append(f'<line class="axis" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{y - 6}" y2="{bottom}"/>')
        parts.append(f'<text class="quiet" x="{x(tick):.1f}" y="{bottom + 15}" text-anchor="middle">{tick:,g}</text>')
    for name, value in values.items():
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR - 3}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="{kind(name)}" x="{LEFT}" y="{y}" width="{max(2.0, x(value) - LEFT):.1f}" height="{BAR}" rx="3">'
                     f"<title>{escape(name)}: {label(value)} {unit}</title></rect>")
        parts.append(f'<text x="{max(x(value), LEFT + 2) + 6:.1f}" y="{y + BAR - 3}">{label(value)} {unit}</text>')
        y += BAR + GAP
    return parts, bottom + 30 - top


def values_of(result, work, key, largest_first):
    rows = {name: row[key] for name, row in result["rows"].get(work, {}).items() if row.get(key)}
    return dict(sorted(rows.items(), key=lambda item: item[1], reverse=largest_first))


def draw(report):
    """The chart of the first identity of a report."""
    identity, result = next(iter(report["identities"].items()))
    who = "as root" if identity == "root" else "as an unprivileged user"
    machine = f"{who}, {report['machine']['cores']} cores, medians of one interleaved run, logarithmic scale"
    panels = [("Start and end of /bin/true in a new sandbox: less is better", values_of(result, "start", "p50_ms", False), "ms"),
              ("New sandboxes a second on all cores: more is better", values_of(result, "throughput", "per_second", True), "/s"),
              ("A Python one-liner: less is better", values_of(result, "python", "p50_ms", False), "ms"),
              ("Memory of an idle sandbox: less is better", values_of(result, "live", "pss_kb", False), "KB")]
    parts, top = [], 0
    for title, values, unit in panels:
        if values:
            drawn, height = panel(top, title, machine, values, unit)
            parts += drawn
            top += height + 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(top, 40)}" role="img" '
            f'aria-label="How fast Belljar and its peers are">\n<style>{STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n")
