// Lessons: heuristics and anti-patterns with their evidence, learning curves, and contradictions side by side.
import { html, useState } from "../html.js";
import { hrefOf, useCall } from "../state.js";
import { s } from "../strings.js";
import { Shares } from "../charts.js";
import { Button, Card, Confidence, Empty, Item, Page, Range, Result, Select, Tabs, Text, Time } from "../ui.js";

const TABS = ["heuristics", "antiPatterns", "contradictions"];

export default function Lessons({ projectId, asOf, address, facets }) {
  const { params, change } = address;
  const tab = params.tab || "heuristics";
  const aside = html`<${Select} aria-label=${s.browse.agent} value=${params.agent || ""} onValue=${(agent) => change({ agent })} options=${[["", s.lessons.allAgents], ...facets.agents.map((agent) => [agent, agent])]} />
    <${Range} value=${params.range || "30"} onValue=${(value) => change({ range: value === "30" ? "" : value })} />`;
  return html`<${Page} title=${s.views.lessons} lead=${s.lessons.lead} aside=${aside}>
    <${Curves} projectId=${projectId} agent=${params.agent} range=${Number(params.range) || 30} asOf=${asOf} />
    <${Tabs} label=${s.views.lessons} chosen=${tab} onChoose=${(name) => change({ tab: name === "heuristics" ? "" : name })} tabs=${TABS.map((name) => [name, s.lessons[name]])} />
    ${tab === "contradictions" ? html`<${Contradictions} projectId=${projectId} agent=${params.agent} />` : html`<${Rules} key=${tab} kind=${tab === "heuristics" ? "heuristic" : "anti_pattern"} projectId=${projectId} agent=${params.agent} asOf=${asOf} />`}<//>`;
}

function Curves({ projectId, agent, range, asOf }) {
  const curves = useCall("learning_curve", { project_id: projectId, agent, days: range, until: asOf, buckets: 20 });
  const pointsOf = (curve) => curve.points.map((each) => ({ ...each, value: each.expected, note: s.overview.succeeded(each.succeeded, each.tried) }));
  return html`<${Result} of=${curves} empty=${[(data) => !data.overall.points.length, html`<${Card} title=${s.lessons.curve}><${Empty} title=${s.lessons.nothing}>${s.lessons.nothingWhy}<//><//>`]}>${(data) => html`<div class="grid">
    <${Card} title=${s.lessons.curve} className="span-12" aside=${s.overview.succeeded(data.overall.succeeded, data.overall.tried)}><${Shares} label=${s.lessons.curveOf} points=${pointsOf(data.overall)} /><//>
    ${data.agents.length > 1 && data.agents.slice(0, 6).map((each) => html`<${Card} key=${each.agent} className="span-4" title=${html`<a href=${hrefOf("lessons", { agent: each.agent })}>${each.agent}</a>`} label=${each.agent}><${Shares} short label=${`${each.agent}: ${s.lessons.curveOf}`} points=${pointsOf(each)} /><//>`)}</div>`}<//>`;
}

function Rules({ kind, projectId, agent, asOf }) {
  const [limit, setLimit] = useState(30);
  const rules = useCall("browse_memories", { kind, project_id: projectId, agent, as_of: asOf, limit });
  return html`<${Card}><${Result} of=${rules} empty=${[(data) => !data.rows.length, html`<${Empty} title=${s.lessons.nothing}>${s.lessons.nothingWhy}<//>`]}>${(data) => html`<div class="list">${data.rows.map((row) => (kind === "heuristic" ? html`<${Rule} key=${row.id} row=${row} projectId=${projectId} asOf=${asOf} />` : html`<${Warning} key=${row.id} row=${row} />`))}</div>
    ${data.next_cursor && limit < 200 && html`<${Button} onClick=${() => setLimit(limit + 30)}>${s.more}<//>`}`}<//><//>`;
}

function Rule({ row, projectId, asOf }) {
  const [open, setOpen] = useState(false);
  const history = useCall(open ? "lesson_history" : null, { project_id: projectId, heuristic_id: row.id, as_of: asOf });
  return html`<article class="item"><div class="item-body"><div class="item-meta">${row.agent}<span>${s.lessons.worked(row.succeeded, row.tried)}</span><${Time} at=${row.updated_at || row.created_at} /></div>
      <p class="item-text"><a href=${hrefOf("memory", { kind: "heuristic", id: row.id })}><${Text}>${row.text}<//></a></p><p class="item-title">${s.lessons.when}: <${Text}>${row.title}<//></p>
      ${open && html`<${Result} of=${history}>${(data) => html`${data.points.length > 0 && html`<${Shares} short label=${s.memory.confidenceOver} reference=${0.5} points=${data.points.map((each) => ({ ...each, value: each.expected, note: s.lessons.worked(each.succeeded, each.tried) }))} />`}
        ${data.to_turn !== undefined && html`<p class="small quiet">${row.confidence > 0.5 ? s.memory.flips(data.to_turn) : s.memory.flipsUp(data.to_turn)}</p>`}`}<//>`}</div>
    <div class="item-aside"><${Confidence} value=${row.confidence} /><${Button} small aria-expanded=${open} onClick=${() => setOpen(!open)}>${s.lessons.overTime}<//></div></article>`;
}

const Warning = ({ row }) => html`<${Item} row=${{ ...row, title: "" }} href=${hrefOf("memory", { kind: "anti_pattern", id: row.id })} aside=${html`<span class="small quiet">${s.lessons.failedTimes(row.tried)}</span>`}>${row.title && html`<p class="item-title">${s.lessons.why}: <${Text}>${row.title}<//></p>`}<//>`;

function Contradictions({ projectId, agent }) {
  const found = useCall("list_contradictions", { project_id: projectId, agent });
  const Side = ({ side }) => html`<div><div class="item-meta">${side.agent}<span>${s.lessons.worked(side.succeeded, side.tried)}</span></div><p><a href=${hrefOf("memory", { kind: "heuristic", id: side.id })}><${Text}>${side.strategy}<//></a></p>
    <p class="item-title">${s.lessons.when}: <${Text}>${side.condition}<//></p><${Confidence} value=${side.expected} low=${side.low} high=${side.high} /></div>`;
  return html`<${Card}><${Result} of=${found} empty=${[(data) => !data.contradictions.length, html`<${Empty} title=${s.lessons.noContradictions} />`]}>${(data) => html`<div class="stack">${data.contradictions.map((each) => html`<div key=${each.stronger.id + each.weaker.id} class="stack tight"><div class="pair"><${Side} side=${each.stronger} /><${Side} side=${each.weaker} /></div>
    ${each.successes_to_turn !== undefined && html`<p class="small quiet">${s.lessons.tips(each.successes_to_turn, each.weaker.strategy.slice(0, 80))}</p>`}</div>`)}</div>`}<//><//>`;
}
