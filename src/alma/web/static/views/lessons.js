// Lessons: heuristics and anti-patterns with their evidence, learning curves, contradictions, and measured benefit.
import { html, useState } from "../html.js";
import { hrefOf, reloadAll, useCall } from "../state.js";
import { s } from "../strings.js";
import { Shares } from "../charts.js";
import { demote, reinstate } from "../actions.js";
import { Badge, Button, Card, Check, Confidence, Effect, Empty, Item, KindBadge, Page, Range, Result, Select, Tabs, Text, Time } from "../ui.js";

const TABS = ["heuristics", "antiPatterns", "contradictions", "benefit"];

export default function Lessons({ projectId, asOf, address, facets, can }) {
  const { params, change } = address;
  const tab = params.tab || "heuristics";
  const aside = html`<${Select} aria-label=${s.browse.agent} value=${params.agent || ""} onValue=${(agent) => change({ agent })} options=${[["", s.lessons.allAgents], ...facets.agents.map((agent) => [agent, agent])]} />
    <${Range} value=${params.range || "30"} onValue=${(value) => change({ range: value === "30" ? "" : value })} />`;
  return html`<${Page} title=${s.views.lessons} lead=${s.lessons.lead} aside=${aside}>
    <${Curves} projectId=${projectId} agent=${params.agent} range=${Number(params.range) || 30} asOf=${asOf} />
    <${Tabs} label=${s.views.lessons} chosen=${tab} onChoose=${(name) => change({ tab: name === "heuristics" ? "" : name })} tabs=${TABS.map((name) => [name, s.lessons[name]])} />
    ${tab === "contradictions" ? html`<${Contradictions} projectId=${projectId} agent=${params.agent} asOf=${asOf} />` : tab === "benefit" ? html`<${Benefit} projectId=${projectId} address=${address} can=${can} />` : html`<${Rules} key=${tab} kind=${tab === "heuristics" ? "heuristic" : "anti_pattern"} projectId=${projectId} agent=${params.agent} asOf=${asOf} />`}<//>`;
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

function Contradictions({ projectId, agent, asOf }) {
  const found = useCall("list_contradictions", { project_id: projectId, agent, as_of: asOf });
  const Side = ({ side }) => html`<div><div class="item-meta">${side.agent}<span>${s.lessons.worked(side.succeeded, side.tried)}</span></div><p><a href=${hrefOf("memory", { kind: "heuristic", id: side.id })}><${Text}>${side.strategy}<//></a></p>
    <p class="item-title">${s.lessons.when}: <${Text}>${side.condition}<//></p><${Confidence} value=${side.expected} low=${side.low} high=${side.high} /></div>`;
  return html`<${Card}><${Result} of=${found} empty=${[(data) => !data.contradictions.length, html`<${Empty} title=${s.lessons.noContradictions} />`]}>${(data) => html`<div class="stack">${data.contradictions.map((each) => html`<div key=${each.stronger.id + each.weaker.id} class="stack tight"><div class="pair"><${Side} side=${each.stronger} /><${Side} side=${each.weaker} /></div>
    ${each.successes_to_turn !== undefined && html`<p class="small quiet">${s.lessons.tips(each.successes_to_turn, each.weaker.strategy.slice(0, 80))}</p>`}</div>`)}</div>`}<//><//>`;
}

const TONES = { helps: "good", harms: "bad" };

function Benefit({ projectId, address, can }) {
  const { params, change } = address;
  const given = { project_id: projectId, agent: params.agent };
  const report = useCall("benefit_report", { ...given, signals: params.signals === "yes" || undefined, limit: 100 });
  const act = async (work) => (await work) && reloadAll();
  const lesson = (each) => ({ project_id: projectId, kind: each.kind, ids: [each.memory_id] });
  const aside = html`<${Check} label=${s.lessons.signals} checked=${params.signals === "yes"} onValue=${(on) => change({ signals: on ? "yes" : "" })} />`;
  const Measured = ({ each, reach, children }) => html`<article class="item"><div class="item-body">${children}<p class="small quiet">${s.lessons.tasksWith(each.shown, each.withheld)}</p></div>
    <div class="item-aside"><${Effect} effect=${each.effect} low=${each.low} high=${each.high} reach=${reach} /><${Badge} tone=${TONES[each.state] || ""}>${s.lessons.benefitStates[each.state]}<//></div></article>`;
  return html`<${Card} aside=${aside}><${Result} of=${report} empty=${[(data) => !data.memories.length, html`<${Empty} title=${s.lessons.benefitNothing}>${s.lessons.benefitNothingWhy}<//>`]}>${(data) => {
    const reach = Math.max(0.1, ...data.memories.map((each) => Math.max(Math.abs(each.low), Math.abs(each.high))));
    return html`<p class="quiet">${s.lessons.benefitOf(data.trials, data.level)}</p>
      <div class="list">${data.memories.map((each) => html`<${Measured} key=${each.memory_id} each=${each} reach=${reach}>
        <div class="item-meta"><${KindBadge} kind=${each.kind} />${each.agent}${each.is_demoted && html`<${Badge} tone="warn">${s.lessons.demoted}<//>`}</div>
        <p class="item-text">${each.is_stored ? html`<a href=${hrefOf("memory", { kind: each.kind, id: each.memory_id })}><${Text}>${each.text}<//></a>` : html`<span class="quiet">${s.lessons.noLongerStored}</span>`}</p>
        ${each.is_demoted ? can("reinstate_memories") && html`<div class="row"><${Button} small onClick=${() => act(reinstate(lesson(each)))}>${s.lessons.reinstate}<//></div>` : each.state === "harms" && each.is_stored && can("demote_harmful") && html`<div class="row"><${Button} small onClick=${() => act(demote(lesson(each)))}>${s.lessons.demote}<//></div>`}<//>`)}</div>
      <h3>${s.lessons.groups}</h3><div class="list">${data.groups.map((each) => html`<${Measured} key=${each.name} each=${each} reach=${reach}><p class="item-text">${s.kind[each.name] || each.name}</p><//>`)}</div>`;
  }}<//><//>`;
}
