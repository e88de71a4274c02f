// The page of one memory: what it says, where it comes from, the evidence, its versions, relations and readers.
import { html, useState } from "../html.js";
import { call } from "../api.js";
import { existed, go, hrefOf, reloadAll, useCall } from "../state.js";
import { percent, s, when } from "../strings.js";
import { Changes } from "../diff.js";
import { Shares } from "../charts.js";
import { attempt, Badge, Button, Card, Confidence, CopyButton, Dialog, Empty, Field, Item, KindBadge, Page, Result, Text, Time } from "../ui.js";
import { correct, forget, pin, reject, restore } from "../actions.js";

const FACTS = ["memory", "domain_knowledge", "user_preference"];
const TRUST_TONES = { trusted: "good", untrusted: "warn" };
const TITLED = ["memory", "heuristic"];
const VERSIONED = ["memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern"];

export default function MemoryPage({ projectId, asOf, address, can }) {
  const { kind = "memory", id, user } = address.params;
  const read = useCall(id ? "read_record" : null, { project_id: projectId, kind, id, user_id: user, as_of: asOf });
  if (!id || read.error?.status === 404) return html`<${Gone} id=${id} kind=${kind} user=${user} asOf=${asOf} projectId=${projectId} can=${can} />`;
  return html`<${Result} of=${read} lines=${10}>${(data) => html`<${Loaded} key=${id} data=${data} projectId=${projectId} asOf=${asOf} can=${can} reload=${reloadAll} />`}<//>`;
}

function Gone({ id, kind, user, asOf, projectId, can }) {
  const given = { project_id: projectId, preferences_of: kind === "user_preference" ? user : undefined };
  const archived = useCall(id && !asOf ? "list_archived" : null, { ...given, record_id: id, limit: 1 });
  const row = archived.data?.archived[0];
  const bring = async () => {
    if (await restore({ project_id: projectId, ids: [row.id], kind, user_id: user })) reloadAll();
  };
  if (asOf && id) return html`<${Page} title=${s.memory.gone}><${Card}><${Empty} title=${s.memory.notThen}>${s.memory.notThenWhy(when(asOf))}<//><//><//>`;
  return html`<${Page} title=${s.memory.gone}><${Card}><${Empty} title=${row ? s.states[row.cause] : s.memory.gone} action=${row && can("restore") && html`<${Button} kind="primary" onClick=${bring}>${s.memory.restore}<//>`}>${row ? html`<${Text} longest=${500}>${row.text}<//> ${row.reason || ""}` : s.memory.goneWhy}<//><//><//>`;
}

function Loaded({ data, projectId, asOf, can, reload }) {
  const { row, fields, text } = data;
  const { kind } = row;
  return html`<${Page} title=${html`<${KindBadge} kind=${kind} /> <span class="text">${(TITLED.includes(kind) && row.title ? row.title : text).slice(0, 120)}</span>`} aside=${!asOf && html`<${Actions} data=${data} projectId=${projectId} can=${can} reload=${reload} />`}>
    <div class="grid"><div class="span-8 stack">
      <${Card} title=${s.memory.content} aside=${html`<${CopyButton} text=${text} />`}><div class="content-text"><${Text} block>${text}<//></div>
        ${kind === "heuristic" && html`<p class="quiet">${s.lessons.when}: <${Text}>${fields.condition}<//></p>`}
        ${kind === "outcome" && html`<p><${Badge} tone=${row.success ? "good" : "bad"}>${row.success ? s.events.succeeded : s.events.failed}<//> <${Text}>${fields.strategy_used || ""}<//></p>${fields.error_message && html`<pre dir="auto">${fields.error_message}</pre>`}`}
        ${kind === "anti_pattern" && html`<dl class="facts"><dt>${s.lessons.why}</dt><dd><${Text}>${fields.why_bad || ""}<//></dd>${fields.better_alternative && html`<dt>${s.lessons.instead}</dt><dd><${Text}>${fields.better_alternative}<//></dd>`}</dl>`}<//>
      ${kind === "heuristic" && html`<${History} data=${data} projectId=${projectId} asOf=${asOf} />`}
      ${VERSIONED.includes(kind) && html`<${Versions} row=${row} projectId=${projectId} asOf=${asOf} can=${can} reload=${reload} />`}
      ${FACTS.includes(kind) && html`<${Relations} row=${row} projectId=${projectId} asOf=${asOf} />`}</div>
    <div class="span-4 stack"><${Provenance} data=${data} /><${UsageCard} row=${row} projectId=${projectId} can=${can} />${can("list_audit") && html`<${Audit} row=${row} asOf=${asOf} />`}</div></div><//>`;
}

function Actions({ data, projectId, can, reload }) {
  const { row, text } = data;
  const [dialog, setDialog] = useState(null);
  const given = { project_id: projectId, kind: row.kind, ids: [row.id], user_id: row.kind === "user_preference" ? row.user_id : undefined };
  const then = (work) => async () => (await work()) && reload();
  return html`<a class="button" href=${hrefOf("graph", { kind: row.kind, id: row.id })}>${s.memory.graph}</a>
    ${can("correct_record") && row.kind !== "outcome" && html`<${Button} onClick=${() => setDialog("correct")}>${s.memory.correct}<//>`}
    ${can("supersede_record") && FACTS.includes(row.kind) && html`<${Button} onClick=${() => setDialog("supersede")}>${s.memory.supersede}<//>`}
    ${can("pin_records") && html`<${Button} onClick=${then(() => pin(given, !row.pinned))}>${row.pinned ? s.memory.unpin : s.memory.pin}<//>`}
    ${can("forget_records") && html`<${Button} onClick=${then(() => forget(given, () => s.memory.forgotten))}>${s.memory.forget}<//>`}
    ${can("reject_records") && row.kind !== "outcome" && html`<${Button} kind="danger" onClick=${then(() => reject(given))}>${s.memory.reject}<//>`}
    ${dialog && html`<${Writing} mode=${dialog} row=${row} text=${text} given=${given} close=${() => setDialog(null)} reload=${reload} />`}`;
}

function Writing({ mode, row, text, given, close, reload }) {
  const [now, setNow] = useState(text);
  const [reason, setReason] = useState("");
  const said = { project_id: given.project_id, kind: row.kind, id: row.id, user_id: given.user_id, text: now, reason };
  const submit = async (event) => {
    event.preventDefault();
    if (mode === "correct") {
      if (await correct(said, { text, reason: s.undo }, s.memory.corrected)) close(), reload();
      return;
    }
    const done = await attempt(() => call("supersede_record", said), s.memory.superseded);
    if (done) close(), go("memory", { kind: done.row.kind, id: done.row.id });
  };
  const [title, why] = mode === "correct" ? [s.memory.correctTitle, s.memory.correctWhy] : [s.memory.supersedeTitle, s.memory.supersedeWhy];
  return html`<${Dialog} title=${title} onClose=${close} actions=${html`<button class="button primary" form="writing">${s.save}</button>`}>
    <form id="writing" class="stack tight" onSubmit=${submit}><p class="quiet">${why}</p><${Field} label=${s.memory.text}><textarea name="text" required dir="auto" value=${now} onInput=${(event) => setNow(event.target.value)}></textarea><//>
      <${Field} label=${s.memory.reason}><input name="reason" value=${reason} onInput=${(event) => setReason(event.target.value)} /><//></form><//>`;
}

const shown = (name, value) => {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return when(value);
  if (name === "importance_score") return percent(value);
  if (typeof value === "boolean") return value ? s.yes : s.no;
  return html`<${Text} longest=${300}>${value}<//>`;
};

function Provenance({ data }) {
  const { row, fields, interval } = data;
  const context = { ...(fields.context_json || {}), ...(fields.metadata || {}) };
  const layers = Object.keys(fields).filter((name) => name.startsWith("layer_") && fields[name]).map((name) => name.slice(6));
  return html`<${Card} title=${s.memory.provenance}><dl class="facts">
      ${FACTS.includes(row.kind) && html`<dt>${s.memory.trust}</dt><dd><${Badge} tone=${TRUST_TONES[row.trust]}>${s.trust[row.trust]}<//> ${fields.source ? "" : row.provenance ? html`<${Text}>${row.provenance}<//>` : html`<span class="small quiet">${s.memory.unknownSource}</span>`}</dd>`}
      ${row.confidence !== undefined && html`<dt>${s.memory.confidence}</dt><dd><${Confidence} value=${row.confidence} low=${interval?.[0]} high=${interval?.[1]} /></dd>`}
      ${row.tried !== undefined && row.succeeded !== undefined && html`<dt>${s.memory.evidence}</dt><dd><${Badge} tone="good">${s.memory.evidenceFor(row.succeeded)}<//> <${Badge} tone="bad">${s.memory.evidenceAgainst(row.tried - row.succeeded)}<//></dd>`}
      ${Object.entries(s.memory.fields).filter(([name]) => fields[name] !== undefined && fields[name] !== false && fields[name] !== 0).map(([name, label]) => html`<dt key=${name}>${label}</dt><dd>${name === "session_id" ? html`<a href=${hrefOf("work", { session: fields[name] })}>${fields[name]}</a>` : shown(name, fields[name])}</dd>`)}
      ${layers.length > 0 && html`<dt>${s.memory.layers}</dt><dd>${layers.join(", ")}</dd>`}${row.tags.length > 0 && html`<dt>${s.memory.tags}</dt><dd>${row.tags.map((tag) => html`<${Badge} key=${tag}>${tag}<//> `)}</dd>`}
      <dt>${s.memory.id}</dt><dd><code>${row.id}</code></dd></dl>
    ${Object.keys(context).length > 0 && html`<details><summary>${s.memory.raw}</summary><pre dir="auto">${JSON.stringify(context, null, 2)}</pre></details>`}<//>`;
}

function History({ data, projectId, asOf }) {
  const history = useCall("lesson_history", { project_id: projectId, heuristic_id: data.row.id, as_of: asOf });
  return html`<${Card} title=${s.memory.confidence}><${Result} of=${history}>${(found) => html`
    ${found.points.length > 0 && html`<${Shares} label=${s.memory.confidenceOver} reference=${0.5} points=${found.points.map((each) => ({ ...each, value: each.expected, note: s.lessons.worked(each.succeeded, each.tried) }))} />`}
    ${found.to_turn !== undefined && html`<p class="quiet small">${data.row.confidence > 0.5 ? s.memory.flips(found.to_turn) : s.memory.flipsUp(found.to_turn)}</p>`}
    <details><summary>${s.memory.evidence}</summary><ul class="stack tight">${[...found.points].reverse().slice(0, 50).map((each) => html`<li key=${each.outcome_id}><${Badge} tone=${each.success ? "good" : "bad"}>${each.success ? s.events.succeeded : s.events.failed}<//> <a href=${hrefOf("memory", { kind: "outcome", id: each.outcome_id })}>${when(each.at)}</a></li>`)}</ul></details>`}<//><//>`;
}

const FIRST_VERSIONS = 6;

function Versions({ row, projectId, asOf, can, reload }) {
  const [shown, setShown] = useState(FIRST_VERSIONS);
  const versions = useCall("list_versions", { project_id: projectId, id: row.id, kind: row.kind });
  const back = async (number) => {
    if (await attempt(() => call("restore_version", { project_id: projectId, id: row.id, kind: row.kind, number, reason: s.memory.restoreVersion }), s.memory.restored)) reload();
  };
  const versionsOf = (data) => data.versions.filter((each) => existed(each.recorded_at, asOf)).reverse();
  return html`<${Card} title=${s.memory.versions}><${Result} of=${versions} empty=${[(data) => versionsOf(data).length < 2, html`<p class="quiet">${s.memory.noVersions}</p>`]}>${(data) => html`<div>${versionsOf(data).slice(0, shown).map((each, i) => html`
    <div class="version" key=${each.number}><div class="spread"><span><b>${each.number}</b> ${each.change} <span class="quiet">${each.author || ""} <${Time} at=${each.recorded_at} /></span></span>${i > 0 && !asOf && can("restore_version") && html`<${Button} small onClick=${() => back(each.number)}>${s.memory.restoreVersion}<//>`}</div>
      ${each.reason && html`<p class="small quiet"><${Text}>${each.reason}<//></p>`}${each.changes.length > 0 && html`<${Changes} changes=${each.changes} />`}</div>`)}${versionsOf(data).length > shown && html`<${Button} small onClick=${() => setShown(shown + 30)}>${s.more}<//>`}</div>`}<//><//>`;
}

function Relations({ row, projectId, asOf }) {
  const facts = useCall("memory_relations", { project_id: projectId, memory_id: row.id, user_id: row.kind === "user_preference" ? row.user_id : undefined });
  const around = useCall(row.kind === "memory" ? "related_memories" : null, { project_id: projectId, memory_id: row.id, limit: 30 });
  const relations = (facts.data?.relations || []).filter((each) => existed(each.related_at, asOf));
  const known = new Set(relations.map((each) => each.other_id));
  const others = (around.data?.related || []).filter((each) => !known.has(each.memory.id) && existed(each.memory.created_at, asOf));
  return html`<${Card} title=${s.memory.relations}><${Result} of=${facts}>${(data) => (relations.length || data.merged?.length || others.length ? html`<div class="list">
    ${relations.map((each) => html`<${Item} key=${each.other_id + each.relation} row=${{ kind: row.kind, id: each.other_id, text: each.other, created_at: each.related_at }} href=${hrefOf("memory", { kind: row.kind, id: each.other_id })}><p class="small"><${Badge} tone=${each.relation.includes("contradict") ? "warn" : "accent"}>${each.relation.replaceAll("_", " ")}<//> ${percent(each.probability)} <span class="quiet">${each.evidence.join("; ")}</span></p><//>`)}
    ${others.map((each) => html`<${Item} key=${each.memory.id} row=${{ kind: "memory", id: each.memory.id, text: each.memory.content, title: each.memory.title, created_at: each.memory.created_at }} href=${hrefOf("memory", { id: each.memory.id })}><p class="small"><${Badge} tone="accent">${each.relation.replaceAll("_", " ")}<//></p><//>`)}
    ${(data.merged || []).map((each) => html`<${Item} key=${each.id} row=${{ kind: row.kind, id: each.id, text: each.text, state: "merged" }}><p class="small quiet">${each.reason}</p><//>`)}</div>` : html`<p class="quiet">${s.memory.noRelations}</p>`)}<//><//>`;
}

function UsageCard({ row, projectId, can }) {
  const usage = useCall("memory_usage", { project_id: projectId, kind: row.kind, id: row.id, user_id: row.kind === "user_preference" ? row.user_id : undefined });
  const judge = (helpful) => attempt(() => call("mark_helpful", { project_id: projectId, memory_id: row.id, helpful }), s.memory.noted);
  return html`<${Card} title=${s.memory.usage} aside=${row.kind === "memory" && can("mark_helpful") && html`<${Button} small onClick=${() => judge(true)}>${s.memory.helps}<//><${Button} small onClick=${() => judge(false)}>${s.memory.helpsNot}<//>`}><${Result} of=${usage} lines=${2}>${(data) => html`<div class="stack tight">
    ${data.reads || data.by_session.length || data.handed_to.length ? html`<ul class="stack tight small">${data.handed_to.map((agent) => html`<li key=${agent}>${s.memory.handedTo(agent)}</li>`)}
      ${data.by_session.map((each) => html`<li key=${each.session_id || "-"}>${each.session_id ? html`<a href=${hrefOf("work", { session: each.session_id })}><${Text}>${each.session}<//></a>` : s.memory.outside}: ${s.memory.reads(each.reads)}${each.helpful > 0 && `, ${s.memory.helpful(each.helpful)}`}${each.unhelpful > 0 && `, ${s.memory.unhelpful(each.unhelpful)}`} <${Time} at=${each.last_at} /></li>`)}
      ${!data.by_session.length && data.reads > 0 && html`<li>${s.memory.reads(data.reads)}</li>`}</ul>` : html`<p class="quiet small">${s.memory.usageNone}</p>`}
    <h3>${s.memory.injected}</h3>${data.held_by.length ? html`<ul class="small stack tight">${data.held_by.map((each) => html`<li key=${each.session_id}><a href=${hrefOf("work", { session: each.session_id })}><${Text}>${each.session}<//></a>${each.pinned && html` <${Badge} tone="accent">${s.work.pinned}<//>`}</li>`)}</ul>` : html`<p class="quiet small">${s.memory.injectedNone}</p>`}</div>`}<//><//>`;
}

function Audit({ row, asOf }) {
  const events = useCall("list_audit", { resource_type: row.kind, resource_id: row.id, until: asOf, limit: 12 });
  return html`<${Card} title=${s.memory.audit}><${Result} of=${events} lines=${2}>${(data) => html`<ul class="small stack tight">${data.events.map((each) => html`<li key=${each.id} class="spread"><span>${each.action} <span class="quiet">${each.user_id || each.agent_id || ""}</span></span><${Time} at=${each.created_at} /></li>`)}</ul>`}<//><//>`;
}
