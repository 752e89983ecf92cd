"""The HTML of a page about a graph; contents.py computes the numbers."""

from __future__ import annotations

from html import escape

from tonari.core.plan import shown
from tonari.core.results.html import table
from tonari.core.trail import Attempt, Choice, Record
from tonari.core.units import duration
from tonari.core.version import __version__
from tonari.graph.page import charts
from tonari.graph.page.charts import bars, dots, short
from tonari.graph.page.contents import Column, Contents, Range
from tonari.graph.statistics import Histogram

CSS = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1b2230; --soft: #5b6575; --line: #dde1e7;
  --bar: #2f6fb3; --s0: #0b3c6f; --s1: #2f6fb3; --s2: #5d98cf; --s3: #93bbe0; --s4: #bcd2e8; --warn: #a33a12; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12151a; --card: #1b2027; --ink: #e8ebf0; --soft: #a0a9b8; --line: #323a46;
    --bar: #6fb1ef; --s0: #d8ecff; --s1: #93c6f5; --s2: #5e9cd6; --s3: #3f73a6; --s4: #33536f; --warn: #ff9d73; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 1280px; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { margin: 4px 0; font-size: 1.35rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 8px; font-size: 1rem; }
p { margin: 6px 0; }
header p, .note, footer { color: var(--soft); font-size: .88rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: 10px; margin: 14px 0; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 8px 12px; }
.tile dt { color: var(--soft); font-size: .8rem; }
.tile dd { margin: 0; font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
.tile small { display: block; color: var(--soft); font-size: .75rem; font-weight: 400; }
.cards { columns: 320px; column-gap: 12px; }
.card { padding: 12px; margin-bottom: 12px; break-inside: avoid; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
svg .axis { text-anchor: middle; }
.bar { fill: var(--bar); }
.line { stroke: var(--line); fill: none; }
.dot { fill: none; stroke-width: 3.2; stroke-linecap: round; stroke-opacity: .85; }
.s0 { stroke: var(--s0); background: var(--s0); } .s1 { stroke: var(--s1); background: var(--s1); }
.s2 { stroke: var(--s2); background: var(--s2); } .s3 { stroke: var(--s3); background: var(--s3); }
.s4 { stroke: var(--s4); background: var(--s4); }
.key { display: flex; flex-wrap: wrap; gap: 4px 12px; color: var(--soft); font-size: .8rem; }
.key i { display: inline-block; width: 10px; height: 10px; margin-right: 5px; border-radius: 50%; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 6px; border-bottom: 1px solid var(--line); text-align: right; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
.warn { color: var(--warn); }
footer { margin-top: 16px; }
"""


def render(of: Contents, title: str) -> str:
    """Return the page, as one HTML document."""
    heading = escape(title)
    cards = [_distances(of), _dimension(of), _map(of), _hubs(of), _components(of), _recall(of), _record(of), _plan(of)]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        f"<header><h1>{heading}</h1>\n<p>{escape(_summary(of))}</p></header>\n"
        f'<dl class="tiles">{_tiles(of)}</dl>\n<main class="cards">\n{"".join(cards)}</main>\n'
        f"<footer>tonari {escape(__version__)}. The file holds all that it shows.</footer>\n</body>\n</html>\n"
    )


def _summary(of: Contents) -> str:
    exact = "no neighbour can be missing" if of.exact else "neighbours may be missing"
    exact += f" among the points that are allowed by {' and '.join(of.filters)}" if of.filters else ""
    also = ", each list begins with the point itself" if of.include_self else ""
    return f"{of.k:,} nearest neighbours of {of.n:,} points by {of.metric}, built by {of.method}: {exact}{also}."


def _tiles(of: Contents) -> str:
    facts: list[tuple[str, str, str]] = [("points", f"{of.n:,}", ""), ("neighbours of each", f"{of.k:,}", "")]
    facts += [("metric", of.metric, f"stored as {of.dtype}"), ("method", of.method, _seed(of))]
    if of.recall is not None:
        facts.append(("recall", f"{of.recall.by_distance:.4f}", f"{of.recall.low:.4f} to {of.recall.high:.4f}, 95 %"))
    facts.append(("local dimension", "-" if of.dimension is None else f"{of.dimension:.3g}", ""))
    facts.append(("components", f"{len(of.components):,}", ""))
    if of.zero is not None:
        facts.append(("zero distances", f"{of.zero:,}", f"{of.duplicates:,} points have a duplicate"))
    if of.missing:
        facts.append(("missing neighbours", f"{of.missing:,}", ""))
    return "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd>{escape(value)}'
        f"{f'<small>{escape(note)}</small>' if note else ''}</dd></div>"
        for name, value, note in facts
    )


def _seed(of: Contents) -> str:
    return "" if of.seed is None else f"seed {of.seed}"


def _card(heading: str, inside: str) -> str:
    return f'<section class="card"><h2>{escape(heading)}</h2>{inside}</section>\n'


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _outside(of: Histogram) -> str:
    return f" {of.outside:,} beyond the ends are not drawn." if of.outside else ""


def _range(of: Range) -> str:
    parts = {} if of is None else of
    return ", ".join(f"{name} {'-' if value is None else short(value)}" for name, value in parts.items())


def _distances(of: Contents) -> str:
    what = "similarity" if of.similarity else "distance"
    return _column(of.first, f"{what} of the nearest neighbour") + _column(of.last, f"{what} of the k-th neighbour")


def _column(of: Column, label: str) -> str:
    heading = label[0].upper() + label[1:]
    if of.histogram is None:
        return _card(heading, _note("No point has one."))
    chart = bars(of.histogram, label=label, unit="points")
    return _card(heading, chart + _note(f"{_range(of.range)}.{_outside(of.histogram)}"))


def _map(of: Contents) -> str:
    if of.map is None:
        return _card("Map", _note("No component has three points."))
    found = of.map
    what = "similarity" if of.similarity else "distance"
    values = -of.map_values if of.similarity else of.map_values
    limits = charts.shades(values)[1]
    names = [f"up to {short(limit)}" for limit in (-limits if of.similarity else limits).tolist()]
    names = [name.replace("up to", "from") for name in names] if of.similarity else names
    key = "".join(f'<span><i class="s{at}"></i>{escape(name)}</span>' for at, name in enumerate([*names, "the others"]))
    whole = len(found.points) == found.covered
    drawn = f"{len(found.points):,} points" if whole else f"{len(found.points):,} points drawn at random"
    rest = "" if whole else f", which stand for {found.covered:,} around them in the graph"
    part = f" of the largest component, of {found.component:,} points" if len(of.components) > 1 else ""
    note = (
        f"{drawn}{part}{rest}. Laplacian eigenmap of the graph (Belkin and Niyogi 2003): points that are connected by "
        f"short walks are near each other; other distances have no meaning. Shades: {what} of the k-th "
        "neighbour, a fifth of the points each."
    )
    chart = dots(found.positions, values, label="Map of the graph")
    return _card("Map", f'{chart}<p class="key">{key}</p>{_note(note)}')


def _hubs(of: Contents) -> str:
    found, chart = of.hubness, ""
    if of.occurrences is not None:
        label = "lists that have a point (k-occurrence)"
        chart = bars(of.occurrences, label=label, unit="points", whole=True)
    note = (
        f"Skewness {found.skewness:.3g} (Radovanović, Nanopoulos and Ivanović 2010); {found.antihubs:,} points are in "
        "no list. Heights are logarithms."
    )
    rows = [(f"{at:,}", f"{count:,}") for at, count in found.hubs]
    return _card("Hubness", chart + _note(note)) + _card("Largest hubs", table(rows, ("point", "lists that have it")))


def _dimension(of: Contents) -> str:
    if of.dimension is None or of.dimensions is None:
        return _card("Local intrinsic dimension", _note("These distances do not determine it."))
    note = (
        f"{of.dimension:.3g} over all points. Maximum likelihood, from the distances of a point's k neighbours (Levina "
        f"and Bickel 2004), averaged as by MacKay and Ghahramani (2005).{_outside(of.dimensions)}"
    )
    chart = bars(of.dimensions, label="local intrinsic dimension", unit="points")
    return _card("Local intrinsic dimension", chart + _note(note))


def _components(of: Contents) -> str:
    count = len(of.components)
    rows = [(str(at + 1), f"{size:,}") for at, size in enumerate(of.components[:5])]
    also = f"The largest 5 of {count:,}. " if count > 5 else ""
    note = f"{also}Points are in one component if neighbours lead from one to the other, whichever lists the other."
    return _card("Connected components", table(rows, ("component", "points")) + _note(note))


def _recall(of: Contents) -> str:
    if of.recall is None:
        return ""
    found = of.recall
    how = "Measured now" if of.measured else "Measured when it was built"
    rows = [("by distance", f"{found.by_distance:.5g}"), ("95 % interval", f"{found.low:.5g} to {found.high:.5g}")]
    rows.append(("by index", f"{found.by_index:.5g}"))
    inside = table(rows) + _note(f"{how}, against the exact answer of {found.rows:,} random points.")
    if of.report is not None:
        report = of.report
        reached = "reached" if report.reached else "not reached"
        facts = f"Target {report.target:g}, {reached}; built in {report.seconds:.3g} s, from {report.start}."
        inside += f'<p class="{"note" if report.reached else "warn"}">{escape(facts)}</p>'
        steps = [(str(at + 1), f"{one.phi:.5g}", f"{one.changed:,}") for at, one in enumerate(report.rounds)]
        inside += table(steps, ("round", "sum of distances", "new neighbours")) if steps else ""
    return _card("Recall", inside)


def _record(of: Contents) -> str:
    record = of.record
    if record is None:
        return ""
    why = f": {record.reason}" if record.reason else ""
    inside = _steps(record) + _note(
        f"Built in {duration(record.seconds)}{f' by {record.method}' if record.method else ''}{why}."
    )
    plan = [
        (name, shown(name, value)) for name, value in ({} if record.plan is None else record.plan.as_dict()).items()
    ]
    return _card("The run", inside) + (_card("Its plan", table(plan)) if plan else "")


def _steps(of: Record) -> str:
    """Return HTML tables of the attempts and decisions in a record, then the tables of the records nested in it."""
    rows = [_attempt(step) for step in of.steps if isinstance(step, Attempt)]
    names = ("attempt", "rows", "proved", "time", "")
    tables = [table(rows, names)] if rows else []
    choices = [(step.what, step.why) for step in of.steps if isinstance(step, Choice)]
    tables += [table(choices, ("decided while it ran", ""))] if choices else []
    for inner in of.parts:
        tables.append(
            _note(f"For it, {inner.title}: {inner.rows:,} rows in {duration(inner.seconds)}.") + _steps(inner)
        )
    return "".join(tables)


def _attempt(of: Attempt) -> tuple[str, ...]:
    proved = "-" if of.proved is None else f"{of.proved:,}"
    return of.name, f"{of.rows:,}", proved, "-" if of.seconds is None else duration(of.seconds), of.note


def _plan(of: Contents) -> str:
    if not of.plan:
        return ""
    return _card("Plan", table([(name, shown(name, value)) for name, value in of.plan.items()]))
