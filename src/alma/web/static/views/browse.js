// Browse: memories of every kind with filters, pages by keyset, and actions on many with undo.
import { html, useEffect, useState } from "../html.js";
import { call } from "../api.js";
import { memoryHref, reloadAll, useCall } from "../state.js";
import { s, when } from "../strings.js";
import { attempt, Badge, Button, Card, Check, Confidence, Empty, Field, fromLocal, Input, Page, Result, Select, Tabs, Text, Time, toLocal } from "../ui.js";
import { forget, pin, reject, restore } from "../actions.js";

const KINDS = ["memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern", "user_preference"];
const FILTERS = ["agent", "user", "tag", "type", "layer", "source", "trust", "session", "state", "success", "pinned", "min", "max", "since", "until"];
const OF_KIND = ["type", "state", "tag", "layer", "success", "source", "trust", "session", "user", "min", "max"];
const SOURCED = ["memory", "domain_knowledge", "user_preference"];
const PAGE = 50;
// So many that a page is answered within a fraction of a second.
const READ_MOST = 100_000;
const ARCHIVED = ["forgotten", "merged", "quarantined", "rejected"];

export function givenOf(params, projectId, asOf) {
  return {
    project_id: projectId, kind: params.kind || "memory", agent: params.agent, user_id: params.user, tag: params.tag, type: params.type, layer: params.layer, source: params.source, trust: params.trust, session_id: params.session,
    state: params.state, success: params.success ? params.success === "yes" : undefined, pinned: params.pinned === "yes" || undefined, min_confidence: params.min ? Number(params.min) : undefined, max_confidence: params.max ? Number(params.max) : undefined,
    // What was recorded at a moment was created before it, and an index finds that.
    since: params.since, until: [params.until, asOf].filter(Boolean).sort()[0], words: params.words, as_of: asOf,
    read_most: FILTERS.some((name) => params[name]) ? READ_MOST : undefined,
  };
}

export default function Browse({ projectId, asOf, address, facets, can }) {
  const { params, change } = address;
  const kind = params.kind || "memory";
  const given = givenOf(params, projectId, asOf);
  const first = useCall("browse_memories", given);
  const [chosen, setChosen] = useState(new Set());
  useEffect(() => setChosen(new Set()), [first.data]);
  const { rows, next, searched, busy, loadMore } = useMore(first, given);
  const active = FILTERS.filter((name) => params[name]);
  const clear = () => change(Object.fromEntries(FILTERS.map((name) => [name, ""])));
  return html`<${Page} title=${s.views.browse} lead=${s.browse.lead}>
    <${Tabs} label=${s.views.browse} chosen=${kind} onChoose=${(value) => change({ ...Object.fromEntries(OF_KIND.map((name) => [name, ""])), kind: value })} tabs=${KINDS.map((name) => [name, s.kinds[name]])} />
    <${Card} className="stack tight"><${Field} label=${s.browse.search} wide><${Input} type="search" name="words" value=${params.words || ""} onValue=${(value) => change({ words: value })} /><//>
      <details open=${active.length > 0}><summary>${s.browse.filters}${active.length > 0 && html` <${Badge} tone="accent">${active.length}<//>`}</summary><${Filters} params=${params} change=${change} facets=${facets} kind=${kind} />
        ${active.length > 0 && html`<p><${Button} small onClick=${clear}>${s.browse.clear}<//></p>`}</details><//>
    <${Card}><${Result} of=${first} empty=${[() => !rows.length && !searched, html`<${Empty} title=${s.browse.nothing}>${s.browse.nothingWhy}<//>`]} lines=${10}>${() => html`
      <${Rows} rows=${rows} kind=${kind} chosen=${chosen} setChosen=${setChosen} canWrite=${can("forget_records")} asOf=${asOf} />
      <div class="spread small quiet"><span role="status">${s.browse.shown(rows.length)}${searched && `, ${s.browse.searching(when(searched))}`}</span>${next && !searched && html`<${Button} onClick=${loadMore} busy=${busy}>${s.more}<//>`}</div>`}<//><//>
    ${chosen.size > 0 && html`<${Bulk} rows=${rows.filter((row) => chosen.has(row.id))} kind=${kind} state=${params.state} projectId=${projectId} can=${can} clear=${() => setChosen(new Set())} />`}<//>`;
}

/** The rows of all pages so far. A filter that matches few rows is searched piece by piece until a page is full. */
function useMore(first, given) {
  const [more, setMore] = useState({ rows: [], wanted: PAGE });
  const page = more.of === first.data ? more : { of: first.data, rows: first.data?.rows || [], cursor: first.data?.next_cursor, searched: first.data?.searched_until, wanted: PAGE };
  const goOn = page.searched && page.cursor && page.rows.length < page.wanted;
  const load = async (wanted) => {
    setMore({ ...page, wanted, busy: true });
    const found = await attempt(() => call("browse_memories", { ...given, cursor: page.cursor }));
    setMore((now) => (now.of !== page.of ? now : found ? { of: page.of, wanted, rows: [...page.rows, ...found.rows], cursor: found.next_cursor, searched: found.searched_until } : { ...page, wanted: 0 }));
  };
  useEffect(() => {
    if (goOn && !page.busy) load(page.wanted);
  }, [page.cursor, goOn, page.busy]);
  return { rows: page.rows, next: page.cursor, searched: goOn ? page.searched : undefined, busy: page.busy, loadMore: () => load(page.rows.length + PAGE) };
}

function Filters({ params, change, facets, kind }) {
  const text = (name, label, suggestions) => html`<${Field} label=${label}><${Input} name=${name} value=${params[name] || ""} suggestions=${suggestions} onValue=${(value) => change({ [name]: value })} /><//>`;
  const moment = (name, label) => html`<${Field} label=${label}><input type="datetime-local" name=${name} value=${toLocal(params[name])} onChange=${(event) => change({ [name]: fromLocal(event.target.value) })} /><//>`;
  const share = (name, label) => html`<${Field} label=${label}><${Input} type="number" min="0" max="1" step="0.05" name=${name} value=${params[name] || ""} onValue=${(value) => change({ [name]: value })} /><//>`;
  const states = kind === "memory" ? ["active", "archived", "deleted", "expired", ...ARCHIVED] : ["active", ...ARCHIVED];
  return html`<div class="fields">${kind !== "user_preference" && text("agent", s.browse.agent, facets.agents)}${["memory", "user_preference"].includes(kind) && text("user", s.browse.user, facets.users)}
    ${kind !== "heuristic" && kind !== "anti_pattern" && text("type", s.browse.type, kind === "memory" || kind === "outcome" ? facets.types : facets.domains)}
    ${kind === "memory" && text("tag", s.browse.tag, facets.tags)}${kind === "memory" && text("session", s.browse.session, Object.keys(facets.sessions))}
    ${kind === "memory" && html`<${Field} label=${s.browse.layer}><${Select} name="layer" value=${params.layer || ""} onValue=${(value) => change({ layer: value })} options=${[["", s.any], ...Object.entries(s.browse.layers)]} /><//>`}
    ${SOURCED.includes(kind) && html`${text("source", s.browse.source, facets.sources)}<${Field} label=${s.browse.trust}><${Select} name="trust" value=${params.trust || ""} onValue=${(value) => change({ trust: value })} options=${[["", s.any], ...Object.entries(s.trust)]} /><//>`}
    ${kind === "outcome" && html`<${Field} label=${s.browse.success}><${Select} name="success" value=${params.success || ""} onValue=${(value) => change({ success: value })} options=${[["", s.any], ["yes", s.browse.succeeded], ["no", s.browse.failed]]} /><//>`}
    <${Field} label=${s.browse.state}><${Select} name="state" value=${params.state || "active"} onValue=${(value) => change({ state: value === "active" ? "" : value })} options=${states.map((name) => [name, s.states[name]])} /><//>
    ${kind !== "outcome" && kind !== "anti_pattern" && html`${share("min", kind === "memory" ? s.browse.minImportance : s.browse.minConfidence)}${share("max", s.browse.maxConfidence)}`}
    ${moment("since", s.browse.since)}${moment("until", s.browse.until)}<${Check} label=${s.browse.pinned} checked=${params.pinned === "yes"} onValue=${(on) => change({ pinned: on ? "yes" : "" })} /></div>`;
}

function Rows({ rows, kind, chosen, setChosen, canWrite, asOf }) {
  const toggle = (id, on) => setChosen((now) => {
    const changed = new Set(now);
    if (on) changed.add(id);
    else changed.delete(id);
    return changed;
  });
  const sure = !["outcome", "anti_pattern"].includes(kind);
  const marks = canWrite && !asOf;
  const text = (row) => row.text || row.title || row.id;
  return html`<div class="table-wrap"><table><thead><tr>${marks && html`<th class="narrow"><input type="checkbox" aria-label=${s.browse.chooseAll} checked=${rows.length > 0 && chosen.size === rows.length} onChange=${(event) => setChosen(new Set(event.target.checked ? rows.map((row) => row.id) : []))} /></th>`}
      <th>${s.browse.columns.text}</th><th class="hide-narrow">${s.browse.columns.agent}</th>${kind !== "heuristic" && html`<th class="hide-narrow">${s.browse.columns.type}</th>`}${sure && html`<th class="narrow hide-narrow">${kind === "memory" ? s.browse.columns.importance : s.browse.columns.confidence}</th>`}<th class="narrow">${s.browse.columns.created}</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${chosen.has(row.id) ? "chosen" : ""}>${marks && html`<td class="narrow"><input type="checkbox" aria-label=${s.browse.choose(text(row).slice(0, 80))} checked=${chosen.has(row.id)} onChange=${(event) => toggle(row.id, event.target.checked)} /></td>`}
      <td><a class="clamp" href=${memoryHref(row)}><${Text}>${text(row)}<//></a>${row.title && row.title !== text(row) && html`<div class="small quiet clamp"><${Text}>${row.title}<//></div>`}
        <div class="item-meta">${row.pinned && html`<${Badge} tone="accent">${s.work.pinned}<//>`}${row.state !== "active" && html`<${Badge} tone="warn">${s.states[row.state] || row.state}<//>`}${row.trust === "untrusted" && html`<${Badge} tone="warn">${s.trust.untrusted}<//>`}${row.success !== undefined && html`<${Badge} tone=${row.success ? "good" : "bad"}>${row.success ? s.events.succeeded : s.events.failed}<//>`}${row.tags.filter((tag) => tag !== "pinned").map((tag) => html`<${Badge} key=${tag}>${tag}<//>`)}</div></td>
      <td class="hide-narrow word">${row.agent || row.user_id}</td>${kind !== "heuristic" && html`<td class="hide-narrow word"><${Text}>${row.type || ""}<//></td>`}${sure && html`<td class="narrow hide-narrow"><${Confidence} value=${row.confidence ?? row.importance} /></td>`}<td class="narrow"><${Time} at=${row.created_at} /></td></tr>`)}</tbody></table></div>`;
}

function Bulk({ rows, kind, state, projectId, can, clear }) {
  // Preferences belong to users: those of each are an action of their own.
  const owners = kind === "user_preference" ? [...new Set(rows.map((row) => row.user_id))] : [undefined];
  const done = (work) => async () => {
    let some = false;
    for (const user_id of owners) {
      const ids = rows.filter((row) => user_id === undefined || row.user_id === user_id).map((row) => row.id);
      some = Boolean(await work({ project_id: projectId, kind, ids, user_id })) || some;
    }
    if (some) clear(), reloadAll();
  };
  const away = ARCHIVED.includes(state);
  return html`<div class="bulk" role="region" aria-label=${s.browse.chosen(rows.length)}><b>${s.browse.chosen(rows.length)}</b>
    ${away ? can("restore") && html`<${Button} onClick=${done(restore)}>${s.browse.restore}<//>` : html`
      ${can("pin_records") && html`<${Button} onClick=${done((given) => pin(given, true))}>${s.browse.pin}<//><${Button} onClick=${done((given) => pin(given, false))}>${s.browse.unpin}<//>`}
      ${can("forget_records") && html`<${Button} onClick=${done(forget)}>${s.browse.forget}<//>`}${can("reject_records") && html`<${Button} kind="danger" onClick=${done(reject)}>${s.browse.reject}<//>`}`}
    <${Button} onClick=${clear}>${s.cancel}<//></div>`;
}
