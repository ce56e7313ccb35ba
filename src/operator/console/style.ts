/** The style sheet of the console, without the colours. */
export const STYLE = `* { box-sizing: border-box; }
body {
  display: grid;
  grid-template: auto 1fr / 13rem minmax(0, 1fr);
  margin: 0;
  min-height: 100vh;
  background: var(--ground);
  color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums;
}
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 0; background: var(--ground); }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1.5rem; grid-column: 1 / -1; padding: 0.75rem 1.5rem; border-bottom: 1px solid var(--line); }
header form { display: flex; flex: 1 1 20rem; gap: 0.5rem; min-width: 0; max-width: 44rem; }
header input { flex: 1; min-width: 0; }
.brand { color: var(--ink); font-weight: 650; text-decoration: none; }
nav { padding: 1rem 0.75rem; border-right: 1px solid var(--line); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: 0.375rem 0.75rem; border-radius: 0.5rem; color: var(--quiet); text-decoration: none; }
nav a:is(:hover, [aria-current]) { background: var(--raised); color: var(--ink); }
nav [aria-current] { font-weight: 600; }
main { padding: 1.5rem; }
h1 { margin: 0 0 0.5rem; font-size: 1.375rem; line-height: 1.3; }
h2 { margin: 1.5rem 0 0.5rem; font-size: 1rem; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 21rem; gap: 1.75rem; }
.card { padding: 0 1rem 0.5rem; margin-bottom: 1rem; border: 1px solid var(--line); border-radius: 0.75rem; }
.fields { max-width: 44rem; margin: 0; }
.fields > div { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding: 0.375rem 0; border-bottom: 1px solid var(--line); }
.fields > div:last-child { border: 0; }
dt, .quiet { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.status { padding: 0.125rem 0.5rem; border-radius: 0.375rem; background: var(--raised); font-size: 0.875rem; vertical-align: middle; }
.status.SUCCESS { color: var(--good); }
.status:is(.FAIL, .REJECT) { color: var(--bad); }
.timeline { margin: 0; padding: 0 0 0 1rem; border-left: 2px solid var(--line); list-style: none; }
.timeline li { display: flex; justify-content: space-between; gap: 1rem; padding: 0.25rem 0; }
.timeline small { flex: none; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
:is(th, td) { padding: 0.375rem 1rem 0.375rem 0; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.number { text-align: right; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.note, .error { padding: 0.75rem 1rem; border: 1px solid var(--line); border-radius: 0.75rem; background: var(--raised); }
.error { border-color: var(--bad); }
.filters, .change { display: flex; flex-wrap: wrap; align-items: end; gap: 0.5rem 1rem; margin: 0.75rem 0; }
label { display: grid; gap: 0.125rem; font-size: 0.875rem; }
label:has([type='checkbox']) { display: flex; gap: 0.375rem; align-items: center; min-height: 3rem; }
input:not([type='checkbox']), button, .button {
  min-height: 3rem;
  padding: 0.375rem 0.875rem;
  border: 1px solid var(--unpaid);
  border-radius: 0.75rem;
  background: var(--ground);
  color: var(--ink);
  font: inherit;
}
button, .button { display: inline-flex; align-items: center; font-weight: 600; text-decoration: none; cursor: pointer; }
td .button { min-height: 2.25rem; padding: 0 0.625rem; }
.primary { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
@media (max-width: 50rem) {
  body { display: block; }
  nav { border: 0; padding-bottom: 0; }
  nav ul { display: flex; flex-wrap: wrap; }
  .columns { grid-template-columns: minmax(0, 1fr); }
}
.needs, figure, .tiles { margin: 0 0 1rem; max-width: 62rem; }
h3 { margin: 0.75rem 0 0; font-size: 0.9375rem; }
.facts { max-width: 62rem; }
.facts dt { flex: 0 0 11rem; }
.facts dt::first-letter, .facts dt a::first-letter { text-transform: uppercase; }
.facts dd { flex: 1 1 20rem; }
.facts small { display: block; }
.count { padding: 0 0.5rem; border-radius: 0.5rem; background: var(--raised); font-weight: 600; }
.now dt, .now dt a { color: var(--bad); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); gap: 0.75rem; }
.tiles dt, .tiles small, figcaption, .ends { color: var(--quiet); font-size: 0.875rem; }
.tiles dd { font-size: 1.375rem; font-weight: 650; line-height: 1.3; }
.tiles small { display: block; font-weight: 400; }
.ends { display: flex; justify-content: space-between; margin-bottom: 0.5rem; }
.plot { display: block; width: 100%; height: 9rem; margin-top: 0.5rem; border-bottom: 1px solid var(--quiet); }
.plot .whole { fill: var(--unpaid); }
.plot .part { fill: var(--accent); }
.key { display: inline-block; width: 0.75em; height: 0.75em; border-radius: 0.125rem; background: var(--accent); }
.key.whole { margin-left: 0.5rem; background: var(--unpaid); }
`
