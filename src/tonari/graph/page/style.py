"""The CSS of a page: light or dark by the reader's preference, columns by the width of the window."""

from __future__ import annotations

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
