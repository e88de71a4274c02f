// Overview: what came in, what was learned, what was put aside, the health of the store, and changes as they happen.
import { html, useEffect, useState } from "../html.js";
import { follow } from "../api.js";
import { hrefOf, memoryHref, reloadLive, useCall } from "../state.js";
import { number, percent, s } from "../strings.js";
import { Bars, Shares } from "../charts.js";
import { Badge, Button, Card, Confidence, Empty, Item, KindBadge, Page, Range, Result, Text, Time } from "../ui.js";

const KINDS = ["memory", "outcome", "heuristic", "anti_pattern", "domain_knowledge", "user_preference"];
// Checking more memories takes seconds, so it is asked for.
const CHECKED_AT_ONCE = 20000;
const BUCKETS = { 1: 24, 7: 28, 30: 30, 90: 30, 365: 52 };

export default function Overview({ can, projectId, asOf, address }) {
  const range = Number(address.params.range) || 30;
  const given = { project_id: projectId, days: range, buckets: BUCKETS[range] || 30, until: asOf };
  const counts = useCall("count_over_time", given);
  const isEmpty = (data) => Object.values(data.totals).every((n) => !n);
  const nothing = html`<${Card}><${Empty} title=${s.overview.nothing}>${s.overview.nothingWhy}<//><pre>${`from alma.client import Client\nClient("${location.origin}").learn("helena", "Test the login form", "success", strategy_used="wait until the network is idle")`}</pre><//>`;
  return html`<${Page} title=${s.views.overview} lead=${s.overview.lead} aside=${html`<${Range} value=${range} onValue=${(value) => address.change({ range: value === "30" ? "" : value })} />`}>
    <${Result} of=${counts} empty=${[isEmpty, nothing]} lines=${8}>${(data) => html`<div class="stack"><${Tiles} data=${data} /><div class="grid">
      <${Card} title=${s.overview.cameIn} className="span-8"><${Bars} starts=${data.starts} label=${s.overview.perDay} series=${KINDS.filter((kind) => data.counts[kind]).map((kind) => ({ name: kind, label: s.kinds[kind], values: data.counts[kind] }))} /><//>
      <div class="span-4"><${Health} asOf=${asOf} projectId=${projectId} can=${can} total=${Object.values(data.totals).reduce((a, b) => a + b, 0)} /></div>
      <${Card} title=${s.overview.success} className="span-6"><${Success} projectId=${projectId} can=${can} range=${range} asOf=${asOf} /><//>
      <${Card} title=${s.overview.refused} className="span-6"><${PutAside} data=${data} /><//>
      <${Card} title=${s.overview.learned} className="span-7" aside=${html`<a href=${hrefOf("lessons")}>${s.views.lessons}</a>`}><${Newest} projectId=${projectId} asOf=${asOf} /><//>
      <div class="span-5">${!asOf && html`<${Live} projectId=${projectId} />`}</div></div></div>`}<//><//>`;
}

const Tiles = ({ data }) => html`<div class="tiles">${KINDS.filter((kind) => kind in data.totals).map((kind) => html`<a key=${kind} class="tile" href=${hrefOf("browse", { kind })}>
    <span class=${`small k-${kind}`}>${s.kinds[kind]}</span><b>${number(data.totals[kind])}</b><small>+${number(data.counts[kind].reduce((a, b) => a + b, 0))} ${s.overview.inRange}</small></a>`)}</div>`;

function Success({ projectId, range, asOf, can }) {
  const curve = useCall(can("learning_curve") ? "learning_curve" : null, { project_id: projectId, days: range, until: asOf, agents: false });
  return html`<${Result} of=${curve} empty=${[(data) => !data.overall.points.length, html`<${Empty} title=${s.lessons.nothing}>${s.lessons.nothingWhy}<//>`]}>${(data) => html`
    <${Shares} label=${s.overview.successOf} points=${data.overall.points.map((each) => ({ ...each, value: each.expected, note: s.overview.succeeded(each.succeeded, each.tried) }))} />`}<//>`;
}

function PutAside({ data }) {
  const causes = Object.entries(data.archived);
  if (!causes.length) return html`<p class="quiet">${s.overview.nothingAside}</p>`;
  return html`<${Bars} starts=${data.starts} label=${s.overview.refusedOf} series=${causes.map(([cause, values]) => ({ name: cause, label: s.states[cause] || cause, values }))} />`;
}

function Newest({ projectId, asOf }) {
  const lessons = useCall("browse_memories", { kind: "heuristic", project_id: projectId, limit: 5, as_of: asOf });
  return html`<${Result} of=${lessons} empty=${[(data) => !data.rows.length, html`<${Empty} title=${s.lessons.nothing}>${s.lessons.nothingWhy}<//>`]}>${(data) => html`<div class="list">
    ${data.rows.map((row) => html`<${Item} key=${row.id} row=${row} href=${memoryHref(row)} aside=${html`<${Confidence} value=${row.confidence} />`}><span class="small quiet">${s.lessons.worked(row.succeeded, row.tried)}</span><//>`)}</div>`}<//>`;
}

function Health({ projectId, can, total, asOf }) {
  const health = useCall("health", {});
  const [wanted, setWanted] = useState(total <= CHECKED_AT_ONCE);
  const memories = useCall(wanted ? "memory_health" : null, { project_id: projectId }, { live: false });
  const engines = useCall(can("sync_status") ? "sync_status" : null, {});
  return html`<${Card} title=${asOf ? s.overview.healthNow : s.overview.health}><div class="stack tight">
    <${Result} of=${health} lines=${3}>${(data) => html`<dl class="facts"><dt>${s.overview.store}</dt><dd><span class="pulse"></span> ${data.storage}</dd><dt>${s.overview.model}</dt><dd>${data.embedding_model}</dd></dl>`}<//>
    ${can("sync_status") && html`<${Result} of=${engines} lines=${1}>${(data) => html`<${Engines} data=${data} />`}<//>`}
    ${!wanted && html`<p><${Button} small onClick=${() => setWanted(true)}>${s.overview.check}<//></p>`}
    <${Result} of=${memories} lines=${3}>${(data) => html`<dl class="facts"><dt>${s.overview.stale}</dt><dd>${percent(data.stale_share)}</dd><dt>${s.overview.duplicates}</dt><dd>${percent(data.duplicates_share)}</dd>
      <dt>${s.overview.quarantined}</dt><dd>${data.quarantined ? html`<a href=${hrefOf("review")}>${number(data.quarantined)}</a>` : 0}</dd></dl>
      ${data.recommendations.length ? html`<ul class="small quiet stack tight">${data.recommendations.map((each) => html`<li key=${each}>${each}</li>`)}</ul>` : html`<p class="small quiet">${s.overview.healthy}</p>`}`}<//></div><//>`;
}

/** The engines beside the store: the state of each, and how far behind it is. */
export function Engines({ data }) {
  const engines = data.engines.filter((each) => each.is_configured || each.state !== "unused");
  if (!engines.length) return null;
  return html`<dl class="facts">${engines.map((each) => {
    const bad = each.state === "degraded" || each.state === "parked";
    return html`<dt key=${each.engine}>${each.engine}</dt><dd><${Badge} tone=${bad ? "bad" : each.pending ? "warn" : "good"}>${each.state}<//> <span class="small quiet">${s.overview.engineLag(each.pending)}${each.lag_seconds > 0 && `, ${s.overview.engineSeconds(each.lag_seconds)}`}</span>
      ${(each.problem || each.parked_error) && html`<p class="small"><${Text}>${each.problem || each.parked_error}<//></p>`}</dd>`;
  })}</dl>`;
}

/** The changes as they come; with each the page is read again, but not more often than every other second. */
function Live({ projectId }) {
  const [events, setEvents] = useState([]);
  useEffect(() => {
    const abort = new AbortController();
    let waiting = null;
    follow(projectId, (event) => {
      setEvents((before) => [event, ...before.filter((each) => each.id !== event.id)].slice(0, 12));
      waiting ||= setTimeout(() => ((waiting = null), reloadLive()), 2000);
    }, abort.signal);
    return () => (clearTimeout(waiting), abort.abort());
  }, [projectId]);
  return html`<${Card} title=${s.overview.live} aside=${html`<span class="pulse"></span> ${s.overview.liveLead}`}>
    ${events.length === 0 ? html`<p class="quiet">${s.overview.liveWaiting}</p>` : html`<ul class="live" aria-live="polite">${events.map((event) => html`<li key=${event.id}><${KindBadge} kind=${event.memory_type} />
      <a href=${hrefOf("memory", { kind: event.memory_type, id: event.memory_id })}>${s.events[event.event_type] || event.event_type}</a>${event.agent && html`<span class="quiet">${event.agent}</span>`}<${Time} at=${event.timestamp} /></li>`)}</ul>`}<//>`;
}
