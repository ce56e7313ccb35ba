import { COLOURS } from '../../platform/colours.ts'

/**
 * The style sheet of the console. A box with a table has shaded edges, which its content covers as far as it is
 * scrolled: the shade that remains shows that there is more.
 */
export const STYLE_SHEET = `${COLOURS}
* { box-sizing: border-box; }
body { display: grid; grid-template: auto 1fr / 12.5rem minmax(0, 1fr); margin: 0; min-height: 100vh; background: var(--ground); color: var(--ink); }
body, input, button, .button { font: 0.9375rem/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 0; background: var(--ground); }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1.5rem; grid-column: 1 / -1; padding: 0.625rem 1.5rem; border-bottom: 1px solid var(--line); }
header form { display: flex; flex: 1 1 16rem; gap: 0.5rem; min-width: 0; max-width: 46rem; }
header input { flex: 1; min-width: 0; }
header span { margin-left: auto; }
.brand { flex: 0 0 9.5rem; color: var(--ink); font-weight: 700; text-decoration: none; }
body > nav { padding: 0.75rem; border-right: 1px solid var(--line); }
nav details { display: none; }
nav ul, .timeline { margin: 0; padding: 0; list-style: none; }
nav li a { display: flex; justify-content: space-between; padding: 0.4375rem 0.75rem; border-radius: 0.5rem; color: var(--ink); text-decoration: none; }
nav li a:is(:hover, [aria-current]) { background: var(--raised); font-weight: 600; }
.group { padding: 0.5rem 0.75rem 0; }
nav .inner { padding-left: 1.375rem; }
main { min-width: 0; padding: 1.125rem 1.75rem 3rem; }
h1 { margin: 0; font-size: 1.375rem; line-height: 1.4; }
h2 { margin: 1.25rem 0 0.5rem; font-size: 1rem; }
:is(.card, .columns > div) > h2:first-child { margin-top: 0; }
p { margin: 0.5rem 0; }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem; margin-bottom: 0.5rem; }
.quiet, .crumbs, .crumbs a, .group, .empty, dt, small, ::placeholder { color: var(--quiet); opacity: 1; }
.crumbs, .group, .status, small, pre { font-size: 0.8125rem; }
.columns { display: grid; grid-template: auto 1fr / minmax(0, 1fr) 21.25rem; column-gap: 1.75rem; align-items: start; margin-top: 1rem; }
.columns > :nth-child(2) { grid-area: 1 / 2 / 3; }
.card, .note, .error, .empty { padding: 0.75rem 1rem; margin: 0 0 0.875rem; border: 1px solid var(--line); border-radius: 0.75rem; }
main > .card { margin-top: 0.875rem; }
.warning { padding: 0.25rem 1rem; border-color: color-mix(in srgb, #dba000 45%, var(--ground)); background: color-mix(in srgb, #dba000 12%, var(--ground)); }
.error { border-color: var(--bad); }
.done { border-color: var(--good); }
.empty { padding: 2.5rem 1rem; border-style: dashed; text-align: center; }
.amount { margin: 0; font-size: 2.125rem; font-weight: 700; line-height: 1.3; }
.warning strong, dt, .timeline span { display: inline-block; }
:is(.warning strong, dt, .timeline span)::first-letter { text-transform: uppercase; }
.fields { max-width: 44rem; margin: 0; }
.fields > div { display: flex; justify-content: space-between; gap: 1rem; padding: 0.375rem 0; border-top: 1px solid var(--line); }
.fields > div:first-child { border: 0; }
dt, .timeline small { flex: none; }
dd, .needs, .facts { min-width: 0; margin: 0; overflow-wrap: anywhere; }
.card dd, .fields:not(.facts) dd { text-align: right; }
.card dd, .fields:not(.facts) dd, .say { user-select: all; }
.status { padding: 0.125rem 0.5rem; border-radius: 0.375rem; background: var(--raised); font-weight: 600; }
.status.SUCCESS { background: color-mix(in srgb, var(--good) 10%, var(--ground)); color: var(--good); }
.status:is(.FAIL, .FAILED, .REJECT) { background: color-mix(in srgb, var(--bad) 8%, var(--ground)); color: var(--bad); }
.timeline li { position: relative; display: flex; justify-content: space-between; gap: 1rem; padding: 0 0 0.75rem 1.625rem; --dot: var(--quiet); }
.timeline .success { --dot: var(--good); }
.timeline .failure { --dot: var(--bad); }
.timeline li:not(:last-child)::before { content: ''; position: absolute; inset: 0.5rem auto -0.5rem 0.25rem; border-left: 2px solid var(--line); }
.timeline li::after { content: ''; position: absolute; top: 0.4375rem; left: 0; width: 0.625rem; height: 0.625rem; border-radius: 50%; background: var(--dot); }
.timeline li > span { min-width: 0; overflow-wrap: anywhere; }
:is(.facts, .tiles, .timeline span) small { display: block; }
.table { max-height: calc(100vh - 6rem); margin: 0.75rem 0; overflow: auto; border: 1px solid var(--line); border-radius: 0.75rem; container-type: inline-size;
  --shade: color-mix(in srgb, var(--ink) 25%, transparent);
  background:
    linear-gradient(to right, var(--ground) 40%, transparent) local 0 / 2.5rem 100%,
    linear-gradient(to left, var(--ground) 40%, transparent) local 100% / 2.5rem 100%,
    linear-gradient(to right, var(--shade), transparent) 0 / 0.875rem 100%,
    linear-gradient(to left, var(--shade), transparent) 100% / 0.875rem 100%,
    linear-gradient(to top, var(--ground) 40%, transparent) local 0 100% / 100% 2.5rem,
    linear-gradient(to top, var(--shade), transparent) 0 100% / 100% 0.875rem;
  background-repeat: no-repeat; }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
:is(th, td) { max-width: 26rem; padding: 0.4375rem 0.5rem; border-bottom: 1px solid var(--line); overflow: hidden; text-align: left; text-overflow: ellipsis; white-space: nowrap; }
thead :is(th, td) { position: sticky; top: 0; z-index: 1; background: var(--raised); color: var(--quiet); white-space: normal; }
.number { text-align: right; }
td:empty { padding: 0; }
td .long { display: block; width: 18rem; white-space: normal; }
.id, .utr { user-select: all; }
.id { font: 0.8125rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; white-space: normal; }
td .id, dd .id { display: inline-block; width: 16ch; text-decoration: inherit; vertical-align: bottom; }
td small { display: block; }
.utr { white-space: nowrap; }
.utr span + span { margin-left: 0.25em; }
.text, pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.filters, .actions { display: flex; flex-wrap: wrap; align-items: end; gap: 0.5rem 0.75rem; margin: 0.75rem 0; }
.filters small { display: none; }
.filters input:not([type='checkbox']) { width: 10.5rem; }
.filters [type='datetime-local'] { min-width: 14rem; }
.change label { display: block; max-width: 26rem; margin: 0 0 0.875rem; }
.change input:not([type='checkbox']) { display: block; width: 100%; }
label { display: grid; font-weight: 600; }
:is(.tiles, label) small { font-weight: 400; }
label:has([type='checkbox']) { display: flex; gap: 0.375rem; align-items: center; min-height: 2.5rem; }
input:not([type='checkbox']), button, .button { min-height: 2.5rem; padding: 0.375rem 0.875rem; border: 1px solid var(--unpaid); border-radius: 0.625rem; background: var(--ground); color: var(--ink); }
button, .button { display: inline-flex; align-items: center; border-color: var(--line); font-weight: 600; text-decoration: none; cursor: pointer; }
.actions > :is(button, .button):first-child { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
td .button { display: block; width: max-content; min-height: 1.5rem; padding: 0; border: 0; background: none; color: var(--accent); font-size: inherit; font-weight: 400; text-decoration: underline; }
.needs, figure, .tiles { margin: 0 0 1rem; max-width: 62rem; }
h3 { margin: 0.75rem 0 0; font-size: 0.9375rem; }
.facts { max-width: 62rem; }
.facts > div { flex-wrap: wrap; gap: 0 1rem; }
.facts dt { flex: 0 0 11rem; }
.facts dd { flex: 1 1 20rem; }
.count { padding: 0 0.4375rem; border-radius: 0.625rem; background: var(--bad); color: var(--ground); font-weight: 600; }
.now dt, .now dt a { color: var(--bad); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); gap: 0.75rem; }
figcaption, .ends { color: var(--quiet); font-size: 0.875rem; }
.tiles dd { font-size: 1.375rem; font-weight: 650; line-height: 1.3; }
.ends { display: flex; justify-content: space-between; margin-bottom: 0.5rem; }
.plot { display: block; width: 100%; height: 9rem; margin-top: 0.5rem; border-bottom: 1px solid var(--quiet); }
.plot .whole { fill: var(--unpaid); }
.plot .part { fill: var(--accent); }
.key { display: inline-block; width: 0.75em; height: 0.75em; border-radius: 0.125rem; background: var(--accent); }
.key.whole { margin-left: 0.5rem; background: var(--unpaid); }
@container (max-width: 40rem) {
  table, tbody, tr, td { display: block; }
  thead, td:empty { display: none; }
  tr { padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
  td { display: flex; justify-content: space-between; gap: 1rem; max-width: none; padding: 0.125rem 1rem; border: 0; text-align: right; white-space: normal; }
  td::before { content: attr(data-name); flex: none; color: var(--quiet); }
}
@media (max-width: 60rem) { .columns { display: block; } }
@media (max-width: 50rem) {
  body { display: block; }
  header, main, body > nav { padding: 0.625rem 1rem; }
  header form { flex-basis: 100%; order: 1; }
  .brand { flex: none; }
  body > nav { border: 0; border-bottom: 1px solid var(--line); }
  nav details { display: block; }
  nav details:not([open]) + ul { display: none; }
  .timeline :is(li, small) { display: block; }
  .table { max-height: none; }
}
`
