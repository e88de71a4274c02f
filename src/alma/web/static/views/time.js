// Time: the moment that every view shows, a timeline, and what differs between two moments.
import { html, useEffect, useState } from "../html.js";
import { call } from "../api.js";
import { hrefOf, memoryHref, useCall } from "../state.js";
import { s } from "../strings.js";
import { Changes } from "../diff.js";
import { attempt, Badge, Button, Card, Empty, Field, fromLocal, Item, KindBadge, Page, Range, Result, Select, Slider, Tabs, Text, toLocal } from "../ui.js";

const DAY = 86400000;
const TONES = { succeeded: "good", failed: "bad", quarantined: "warn", rejected: "warn", session_started: "accent", session_ended: "accent", handoff: "accent" };

export default function TimeView({ projectId, asOf, address }) {
  const { params, change } = address;
  const range = Number(params.range) || 30;
  const tab = params.tab || "timeline";
  return html`<${Page} title=${s.views.time} lead=${s.time.lead} aside=${html`<${Range} value=${range} onValue=${(value) => change({ range: value === "30" ? "" : value })} />`}>
    <${Card}><${Slider} label=${s.time.slider} isShown range=${range} asOf=${asOf} change=${change} /><//>
    <${Tabs} label=${s.views.time} chosen=${tab} onChoose=${(name) => change({ tab: name === "timeline" ? "" : name })} tabs=${[["timeline", s.time.timeline], ["changes", s.time.changes]]} />
    ${tab === "timeline" ? html`<${Timeline} projectId=${projectId} asOf=${asOf} range=${range} params=${params} change=${change} />` : html`<${Between} projectId=${projectId} asOf=${asOf} range=${range} params=${params} change=${change} />`}<//>`;
}

function Timeline({ projectId, asOf, range, params, change }) {
  const since = new Date((asOf ? new Date(asOf).getTime() : Math.ceil(Date.now() / 60000) * 60000) - range * DAY).toISOString();
  const given = { project_id: projectId, since, until: asOf, limit: 50, kinds: params.kind ? [params.kind] : undefined, agent: params.agent, sessions: !params.kind };
  const first = useCall("timeline", given);
  const [more, setMore] = useState([]);
  const [next, setNext] = useState(undefined);
  useEffect(() => (setMore([]), setNext(undefined)), [first.data]);
  const until = next === undefined ? first.data?.next_until : next;
  const load = async () => {
    const page = await attempt(() => call("timeline", { ...given, until }));
    if (page) setMore([...more, ...page.events]), setNext(page.next_until || "");
  };
  const options = [["", s.all], ...["memory", "outcome", "heuristic", "anti_pattern", "domain_knowledge", "user_preference"].map((kind) => [kind, s.kinds[kind]])];
  return html`<${Card} aside=${html`<label class="row small"><span>${s.time.only}</span><${Select} name="kind" value=${params.kind || ""} onValue=${(kind) => change({ kind })} options=${options} /></label>`}>
    <${Result} of=${first} empty=${[(data) => !data.events.length, html`<${Empty} title=${s.time.nothing}>${s.time.nothingWhy}<//>`]}>${(data) => html`<${Events} events=${[...data.events, ...more]} />${until && html`<${Button} onClick=${load}>${s.more}<//>`}`}<//><//>`;
}

function Events({ events }) {
  const days = new Map();
  for (const event of events) {
    const name = new Intl.DateTimeFormat("en-GB", { dateStyle: "full" }).format(new Date(event.at));
    days.set(name, [...(days.get(name) || []), event]);
  }
  const clock = (at) => new Intl.DateTimeFormat("en-GB", { timeStyle: "short" }).format(new Date(at));
  return html`<div class="timeline">${[...days].map(([name, some]) => html`<section key=${name} aria-label=${name}><h3>${name}</h3>${some.map((event) => html`<div class="event" key=${event.kind + event.id + event.event}><time datetime=${event.at}>${clock(event.at)}</time>
    <div class="stack tight"><div class="item-meta"><${KindBadge} kind=${event.kind} /><${Badge} tone=${TONES[event.event] || ""}>${s.events[event.event] || event.event}<//>${event.agent && html`<span>${event.agent}</span>`}</div>
      <p class="clamp"><a href=${event.kind.startsWith("session") ? hrefOf("work", { session: event.session_id }) : memoryHref(event)}><${Text}>${event.text || event.title || event.id}<//></a></p>
      ${event.title && event.title !== event.text && html`<p class="small quiet clamp"><${Text}>${event.title}<//></p>`}</div></div>`)}</section>`)}</div>`;
}

function Between({ projectId, asOf, range, params, change }) {
  const from = params.from || new Date(Math.floor((Date.now() - Math.min(7, range) * DAY) / 60000) * 60000).toISOString();
  const found = useCall("changes_between", { project_id: projectId, since: from, until: params.to || asOf, limit: 100 });
  const input = (name, label, value) => html`<${Field} label=${label}><input type="datetime-local" name=${name} value=${toLocal(value)} max=${toLocal(new Date())} onChange=${(event) => change({ [name]: fromLocal(event.target.value) })} /><//>`;
  const tone = { created: "good", removed: "bad", changed: "accent" };
  return html`<${Card} title=${s.time.changes}><div class="fields">${input("from", s.time.from, from)}${input("to", s.time.to, params.to || asOf)}</div>
    <${Result} of=${found} empty=${[(data) => !data.changes.length, html`<${Empty} title=${s.time.none} />`]}>${(data) => html`<div class="list">${data.changes.map((each) => html`<${Item} key=${each.kind + each.id + each.change} row=${{ ...each, created_at: each.at }} href=${memoryHref(each)} aside=${html`<${Badge} tone=${tone[each.change]}>${s.time[each.change]}<//>`}>
      ${each.reason && html`<p class="small quiet"><${Text}>${each.reason}<//></p>`}${each.changes.length > 0 && html`<${Changes} changes=${each.changes} />`}<//>`)}</div>`}<//><//>`;
}
