// Sessions, handoffs, working memory and work items: what is being worked on, and what the last session left.
import { html, useState } from "../html.js";
import { call } from "../api.js";
import { existed, hrefOf, reloadAll, useCall } from "../state.js";
import { number, s } from "../strings.js";
import { attempt, Badge, Button, Card, Empty, Field, Item, Page, Result, Select, Tabs, Text, Time } from "../ui.js";

export default function Work({ projectId, asOf, address, facets, can }) {
  const { params, change } = address;
  const tab = params.tab || "sessions";
  const tabs = [["sessions", s.work.sessions], ["items", s.work.items]];
  return html`<${Page} title=${s.views.work} lead=${s.work.lead}><${Tabs} label=${s.views.work} chosen=${tab} onChoose=${(name) => change({ tab: name === "sessions" ? "" : name })} tabs=${tabs} />
    ${tab === "sessions" ? html`<${Sessions} projectId=${projectId} asOf=${asOf} params=${params} change=${change} facets=${facets} can=${can} />` : html`<${WorkItems} projectId=${projectId} asOf=${asOf} params=${params} change=${change} facets=${facets} can=${can} />`}<//>`;
}

function Sessions({ projectId, asOf, params, change, facets, can }) {
  const active = { open: true, ended: false }[params.show];
  const sessions = useCall("list_sessions", { project_id: projectId, active, agent: params.agent, limit: 50 });
  const sessionsOf = (data) => data.sessions.filter((each) => existed(each.created_at, asOf));
  const isOpen = (each) => each.is_active || Boolean(asOf && each.ended_at && !existed(each.ended_at, asOf));
  const chosen = params.session || (sessions.data && sessionsOf(sessions.data)[0]?.id);
  const aside = html`<${Select} aria-label=${s.browse.agent} value=${params.agent || ""} onValue=${(agent) => change({ agent, session: "" })} options=${[["", s.lessons.allAgents], ...facets.agents.map((each) => [each, each])]} />
    <${Select} aria-label=${s.browse.state} value=${params.show || ""} onValue=${(show) => change({ show, session: "" })} options=${[["", s.work.allSessions], ["open", s.work.open], ["ended", s.work.ended]]} />`;
  return html`<div class="grid"><${Card} title=${s.work.sessions} className="span-5" aside=${aside}><${Result} of=${sessions} empty=${[(data) => !sessionsOf(data).length, html`<${Empty} title=${s.work.noSessions}>${s.work.noSessionsWhy}<//>`]}>${(data) => html`<div class="list">${sessionsOf(data).map((each) => html`<article key=${each.id} class="item"><div class="item-body"><div class="item-meta"><${Badge} tone=${isOpen(each) ? "good" : ""}>${isOpen(each) ? s.work.open : s.work.ended}<//>${each.agent && html`<span>${each.agent}</span>`}<${Time} at=${each.created_at} /></div>
      <p><a href=${hrefOf("work", { ...params, session: each.id })} aria-current=${each.id === chosen ? "true" : undefined}><${Text}>${each.name || each.goal || each.id}<//></a></p>${each.goal && each.goal !== each.name && html`<p class="small quiet clamp"><${Text}>${each.goal}<//></p>`}</div></article>`)}</div>`}<//><//>
    <div class="span-7 stack">${chosen && html`<${Session} key=${chosen} id=${chosen} projectId=${projectId} asOf=${asOf} can=${can} />`}</div></div>`;
}

function Session({ id, projectId, asOf, can }) {
  const read = useCall("get_session", { project_id: projectId, session_id: id });
  const end = async () => {
    if (await attempt(() => call("end_session", { project_id: projectId, session_id: id }), s.work.endedDone, () => call("switch_session", { project_id: projectId, session_id: id, reopen: true }).then(reloadAll))) reloadAll();
  };
  return html`<${Result} of=${read}>${({ session }) => html`<div class="stack"><${Card} title=${session.name || session.goal || session.id} aside=${session.is_active && !asOf && can("end_session") && html`<${Button} small onClick=${end}>${s.work.end}<//>`}><dl class="facts">
      ${session.goal && html`<dt>${s.work.goal}</dt><dd><${Text}>${session.goal}<//></dd>`}${session.summary && html`<dt>${s.work.summary}</dt><dd><${Text}>${session.summary}<//></dd>`}${session.agent && html`<dt>${s.browse.agent}</dt><dd>${session.agent}</dd>`}<dt>${s.work.started}</dt><dd><${Time} at=${session.created_at} /></dd>
      ${session.git_branch && html`<dt>${s.work.branch}</dt><dd><code>${session.git_branch}</code></dd>`}</dl><p class="small"><a href=${hrefOf("browse", { session: id })}>${s.kinds.memory}</a></p><//>
    ${session.agent && can("latest_handoff") && html`<${Handoff} title=${s.work.left} none=${s.work.leftNothing} given=${{ project_id: projectId, agent: session.agent, session_id: id, as_of: asOf }} /><${Handoff} title=${s.work.began} none=${s.work.beganNothing(session.agent)} given=${{ project_id: projectId, agent: session.agent, as_of: session.created_at }} />`}<${Working} id=${id} projectId=${projectId} asOf=${asOf} can=${can} /></div>`}<//>`;
}

function Handoff({ title, none, given }) {
  const found = useCall("latest_handoff", given);
  const list = (title, lines) => lines?.length > 0 && html`<dt>${title}</dt><dd><ul>${lines.map((line) => html`<li key=${line}><${Text}>${line}<//></li>`)}</ul></dd>`;
  return html`<${Card} title=${title}><${Result} of=${found} lines=${3}>${({ handoff }) => (handoff ? html`<p><${Text}>${handoff.last_action}<//> ${handoff.last_outcome && html`<${Badge} tone=${{ success: "good", failure: "bad" }[handoff.last_outcome] || ""}>${handoff.last_outcome}<//>`} <${Time} at=${handoff.created_at} /></p>
    <dl class="facts">${handoff.current_goal && html`<dt>${s.work.goal}</dt><dd><${Text}>${handoff.current_goal}<//></dd>`}${list(s.work.next, handoff.next_steps)}${list(s.work.blockers, handoff.blockers)}${list(s.work.decisions, handoff.key_decisions)}${list(s.work.files, handoff.active_files)}</dl>` : html`<p class="quiet">${none}</p>`)}<//><//>`;
}

function Working({ id, projectId, asOf, can }) {
  const held = useCall(asOf ? null : "working_set", { project_id: projectId, session_id: id });
  const release = async (memory) => {
    const given = { project_id: projectId, session_id: id, memory_ids: [memory.id] };
    if (await attempt(() => call("release_memories", given), s.work.released, () => call("hold_memories", given).then(reloadAll))) reloadAll();
  };
  if (asOf) return html`<${Card} title=${s.work.working}><p class="quiet">${s.work.onlyNow}</p><//>`;
  return html`<${Card} title=${s.work.working} aside=${held.data && s.work.workingOf(held.data.tokens, held.data.max_tokens)}><${Result} of=${held} lines=${3}>${(data) => (data.memories.length ? html`<div class="list">${data.memories.map((each) => html`<${Item} key=${each.id} row=${{ kind: "memory", id: each.id, title: each.title, text: each.content, agent: each.source_agent, created_at: each.created_at }} href=${hrefOf("memory", { id: each.id })} aside=${can("release_memories") && html`<${Button} small onClick=${() => release(each)}>${s.work.release}<//>`} />`)}</div>` : html`<p class="quiet">${s.work.workingEmpty}</p>`)}<//><//>`;
}

function WorkItems({ projectId, asOf, params, change, facets, can }) {
  const items = useCall("list_work_items", { project_id: projectId, status: params.status, agent: params.agent, limit: 100 });
  const progress = useCall("progress_summary", { project_id: projectId, agent: params.agent });
  const set = async (item, status) => {
    if (await attempt(() => call("update_work_item", { project_id: projectId, item_id: item.id, status }), s.work.statusSet, () => call("update_work_item", { project_id: projectId, item_id: item.id, status: item.status }).then(reloadAll))) reloadAll();
  };
  const itemsOf = (data) => data.items.filter((each) => existed(each.created_at, asOf));
  const statuses = Object.entries(s.work.statuses);
  const aside = html`${progress.data && html`<span>${s.work.progress(progress.data.done, progress.data.total)}</span>`}<${Select} aria-label=${s.work.setStatus} value=${params.status || ""} onValue=${(status) => change({ status })} options=${[["", s.all], ...statuses]} />`;
  return html`<div class="stack">${asOf && html`<p class="quiet">${s.work.statusNow}</p>`}${can("create_work_item") && !asOf && html`<${AddItem} projectId=${projectId} facets=${facets} />`}
    <${Card} title=${s.work.items} aside=${aside}><${Result} of=${items} empty=${[(data) => !itemsOf(data).length, html`<${Empty} title=${s.work.noItems} />`]}>${(data) => html`<div class="table-wrap"><table><tbody>${itemsOf(data).map((each) => html`<tr key=${each.id}><td><${Text}>${each.title}<//>${each.blocked_by?.length > 0 && html` <${Badge} tone="warn">${s.work.statuses.blocked}<//>`}${each.description && html`<div class="small quiet clamp"><${Text}>${each.description}<//></div>`}</td><td class="hide-narrow">${each.agent}</td><td class="num hide-narrow">${number(each.priority)}</td>
      <td class="narrow">${can("update_work_item") && !asOf ? html`<${Select} aria-label=${`${s.work.setStatus}: ${each.title.slice(0, 80)}`} value=${each.status} onValue=${(status) => set(each, status)} options=${statuses} />` : s.work.statuses[each.status]}</td></tr>`)}</tbody></table></div>`}<//><//></div>`;
}

function AddItem({ projectId, facets }) {
  const [title, setTitle] = useState("");
  const [agent, setAgent] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    if (await attempt(() => call("create_work_item", { project_id: projectId, title, agent }), s.work.added)) setTitle(""), reloadAll();
  };
  return html`<${Card} title=${s.work.add}><form class="fields" onSubmit=${submit}><${Field} label=${s.work.title} wide><input name="title" required value=${title} onInput=${(event) => setTitle(event.target.value)} /><//>
    <${Field} label=${s.browse.agent}><${Select} value=${agent} onValue=${setAgent} options=${[["", s.any], ...facets.agents.map((each) => [each, each])]} /><//><button class="button">${s.work.add}</button></form><//>`;
}
