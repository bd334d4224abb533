// The look of html_page: light and dark by the reader's preference, and fit for paper.
#pragma once

namespace benchsand {

inline constexpr const char* kPageStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #5c6570; --line: #dde1e6;
  --good: #1a7f4b; --good-back: #e2f5ea; --bad: #b42318; --bad-back: #fde8e6; --mild: #8a5a00; --mild-back: #fdf1d8;
  --memory: #3b6fd4; --cpu: #b4531a; --tasks: #7a4fc4; --output: #16807c; --refused: #b42318; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --card: #1d2126; --ink: #e7eaee; --soft: #9aa4b0;
  --line: #343a42; --good: #5fd39a; --good-back: #12351f; --bad: #ff8f85; --bad-back: #431b18; --mild: #f2c166;
  --mild-back: #3d2e0c; --memory: #84aaf5; --cpu: #f0a070; --tasks: #b99af0; --output: #5cc9c4; --refused: #ff8f85; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
code, td.value, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .86em;
  overflow-wrap: anywhere; }
.verdict { border-left: .5rem solid var(--bad); background: var(--card); border-radius: .6rem; padding: 1.2rem 1.4rem;
  box-shadow: 0 1px 3px rgba(0, 0, 0, .08); }
.verdict.good { border-color: var(--good); }
.verdict.mild { border-color: var(--mild); }
.verdict .score { font-weight: 700; letter-spacing: .03em; color: var(--bad); }
.verdict.good .score { color: var(--good); }
.verdict.mild .score { color: var(--mild); }
.verdict p { margin: .35rem 0 0; }
.facts { color: var(--soft); font-size: .9em; overflow-wrap: anywhere; }
.card { background: var(--card); border-radius: .6rem; border: 1px solid var(--line); overflow: hidden; }
details { border-top: 1px solid var(--line); }
.card > details:first-child { border-top: 0; }
summary { display: flex; gap: .8rem; align-items: baseline; padding: .5rem .9rem; cursor: pointer; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "\203A"; flex: 0 0 .6rem; color: var(--soft); transition: transform .15s; }
details[open] > summary::before { transform: rotate(90deg); }
summary:hover { background: var(--page); }
summary .name { flex: 0 0 6.5rem; font-weight: 600; }
summary .words { flex: 1; overflow-wrap: anywhere; }
.pill { flex: 0 0 5.4rem; text-align: center; border-radius: 1rem; font-size: .8em; font-weight: 600; padding: .1rem .5rem;
  background: var(--good-back); color: var(--good); }
.pill.broken { background: var(--bad-back); color: var(--bad); }
.pill.unknown { background: var(--mild-back); color: var(--mild); }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .92em; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .85em; }
th, td { padding: .35rem .9rem; border-top: 1px solid var(--line); vertical-align: baseline; }
.card > table tr:first-child th, .card > .wide > table tr:first-child th { border-top: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.fixed, td.when { white-space: nowrap; }
tr.broken td { background: var(--bad-back); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem .9rem .4rem; }
figcaption { font-size: .92em; }
figcaption span { color: var(--soft); }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-family: inherit; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .limit { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 5 4; }
svg .area { fill: currentColor; opacity: .16; }
svg .curve { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
svg circle { fill: currentColor; }
svg.memory { color: var(--memory); } svg.cpu { color: var(--cpu); } svg.tasks { color: var(--tasks); }
svg.output { color: var(--output); } svg.refused { color: var(--refused); }
p.none { color: var(--soft); margin: .3rem 0; }
footer { margin-top: 2rem; color: var(--soft); font-size: .82em; overflow-wrap: anywhere; }
@media (max-width: 40rem) { summary { flex-wrap: wrap; } summary .words { flex-basis: 100%; }
  .charts { grid-template-columns: 1fr; } }
@media print { :root { --page: #ffffff; --card: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb; }
  main { max-width: none; padding: 0; } .card, figure, tr, details { break-inside: avoid; } .verdict { box-shadow: none; }
  body { font-size: 11px; } .charts { grid-template-columns: 1fr 1fr; } }
)css";

}  // namespace benchsand
