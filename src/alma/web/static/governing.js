// Keys, settings and forgetting.
import { html, useState } from "./html.js";
import { call, key } from "./api.js";
import { memoryHref, reloadAll, useCall } from "./state.js";
import { s } from "./strings.js";
import { attempt, Badge, Button, Card, Check, CopyButton, Dialog, Empty, Entry, Field, Input, KindBadge, Result, Select, Text, Time, toast } from "./ui.js";

const RIGHTS = ["read", "write", "delete", "admin"];
const said = s.operations;

export function Keys({ can, facets, reloadMe }) {
  const keys = useCall("list_keys", {});
  const [made, setMade] = useState(null);
  const [asked, setAsked] = useState(null);
  const revoke = async (each) => {
    setAsked(null);
    if (await attempt(() => call("revoke_key", { key_id: each.id }), said.keys.revoked)) keys.reload();
  };
  const isFirst = keys.data && !keys.data.keys.length;
  return html`<div class="stack">${can("create_key") && html`<${CreateKey} facets=${facets} isFirst=${isFirst} done=${(answer) => {
    if (isFirst) key.set(answer.token, false);
    setMade(answer);
    keys.reload();
    reloadMe();
  }} />`}
    ${made && html`<div class="banner" role="status"><div class="stack tight"><span>${said.keys.made}</span><code class="token">${made.token}</code>${isFirst && html`<span>${said.keys.first}</span>`}</div><${CopyButton} text=${made.token} /></div>`}
    <${Card} title=${said.sections.keys}><${Result} of=${keys} empty=${[(data) => !data.keys.length, html`<${Empty} title=${said.keys.nothing} />`]}>${(data) => html`<div class="table-wrap"><table><tbody>${data.keys.map((each) => html`<tr key=${each.id}><td><b><${Text}>${each.name}<//></b><div class="small quiet"><code>${each.prefix}</code></div></td><td>${each.rights.join(", ")}</td>
      <td class="hide-narrow">${[each.user_id, each.project_id, each.agent].filter(Boolean).join(", ") || said.keys.unlimited}</td><td class="hide-narrow small quiet">${each.last_used_at ? html`${said.keys.used} <${Time} at=${each.last_used_at} />` : said.keys.never}</td>
      <td class="narrow"><${Badge} tone=${each.status === "valid" ? "good" : "bad"}>${said.keys.states[each.status] || each.status}<//></td><td class="narrow">${each.status === "valid" && can("revoke_key") && html`<${Button} small kind="danger" onClick=${() => setAsked(each)}>${said.keys.revoke}<//>`}</td></tr>`)}</tbody></table></div>`}<//><//>
    ${asked && html`<${Dialog} title=${said.keys.revoke} onClose=${() => setAsked(null)} actions=${html`<${Button} kind="danger" onClick=${() => revoke(asked)}>${said.keys.revoke}<//>`}><p>${said.keys.revokeSure(asked.name)}</p><//>`}</div>`;
}

function CreateKey({ facets, isFirst, done }) {
  const [given, setGiven] = useState({ name: "", rights: ["read"], days: "" });
  const change = (more) => setGiven((now) => ({ ...now, ...more }));
  const rights = isFirst ? RIGHTS : given.rights;
  const submit = async (event) => {
    event.preventDefault();
    const answer = await attempt(() => call("create_key", { ...given, rights, days: given.days ? Number(given.days) : undefined }));
    if (answer) change({ name: "" }), done(answer);
  };
  return html`<${Card} title=${said.keys.create}><form class="stack tight" onSubmit=${submit}>${isFirst && html`<p class="small quiet">${said.keys.firstWarning}</p>`}<div class="fields"><${Field} label=${said.keys.name}><input name="name" required maxlength="200" value=${given.name} onInput=${(event) => change({ name: event.target.value })} /><//>
      ${!isFirst && html`<${Field} label=${said.keys.limitProject}><${Input} name="project_id" value=${given.project_id || ""} suggestions=${facets.projects} onValue=${(project_id) => change({ project_id })} /><//><${Field} label=${said.keys.limitUser}><${Input} name="user_id" value=${given.user_id || ""} suggestions=${facets.users} onValue=${(user_id) => change({ user_id })} /><//>
      <${Field} label=${said.keys.limitAgent}><${Input} name="agent" value=${given.agent || ""} suggestions=${facets.agents} onValue=${(agent) => change({ agent })} /><//>`}<${Field} label=${said.keys.days}><input name="days" type="number" min="1" value=${given.days} onInput=${(event) => change({ days: event.target.value })} /><//></div>
    <fieldset class="row"><legend class="unseen">${said.keys.rights}</legend>${RIGHTS.map((right) => html`<${Check} key=${right} label=${right} checked=${rights.includes(right)} disabled=${isFirst} onValue=${(on) => change({ rights: on ? [...given.rights, right] : given.rights.filter((each) => each !== right) })} />`)}</fieldset><div><button class="button primary" disabled=${!rights.length}>${said.keys.create}</button></div></form><//>`;
}

export function Settings({ can, me }) {
  const [user, setUser] = useState("");
  const settings = useCall("list_settings", { user_id: user || undefined });
  const set = async (each, value) => {
    const kept = each.value;
    const given = { key: each.key, user_id: user || undefined };
    if (await attempt(() => call("set_setting", { ...given, value }), said.settings.changed, () => call("set_setting", { ...given, value: kept }).then(reloadAll))) settings.reload();
  };
  const field = (each) => {
    if (!can("set_setting") || (!user && !me.rights.includes("admin"))) return String(each.value);
    if (typeof each.value === "boolean") return html`<${Check} label=${each.value ? s.yes : s.no} checked=${each.value} onValue=${(value) => set(each, value)} aria-label=${each.key} />`;
    const isNumber = typeof each.value === "number";
    return html`<${Entry} aria-label=${each.key} type=${isNumber ? "number" : "text"} step="any" value=${each.value} onEntered=${(text) => set(each, isNumber ? Number(text) : text)} />`;
  };
  return html`<${Card} title=${said.sections.settings} aside=${html`<label class="row small"><span>${s.ask.user}</span><${Input} value=${user} onValue=${setUser} /></label>`}><${Result} of=${settings}>${(data) => html`<div class="table-wrap"><table><tbody>${data.settings.map((each) => html`<tr key=${each.key}><td><b>${each.key.replaceAll("_", " ")}</b><div class="small quiet">${each.description}</div></td><td>${field(each)}</td><td class="hide-narrow small quiet">${said.settings.default(String(each.default))}${each.source !== "default" && `, ${said.settings.source(each.source)}`}</td></tr>`)}</tbody></table></div>`}<//><//>`;
}

export function Forgetting({ projectId, can, facets }) {
  const [given, setGiven] = useState({ older_than_days: 90, below_confidence: 0.3, agent: "" });
  const [shown, setShown] = useState(null);
  const [days, setDays] = useState(30);
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const change = (more) => (setGiven((now) => ({ ...now, ...more })), setShown(null));
  const asking = { ...given, project_id: projectId };
  const dry = async (event) => {
    event?.preventDefault();
    setBusy(true);
    setShown(await attempt(() => call("forget", { ...asking, dry_run: true })));
    setBusy(false);
  };
  const run = async () => {
    const ids = shown.items.map((each) => each.id);
    setBusy(true);
    const done = await attempt(() => call("forget", asking));
    setBusy(false);
    if (!done) return;
    setShown(null);
    toast(said.forgetting.done(done.forgotten), ids.length ? () => call("restore", { project_id: projectId, ids }) : undefined);
  };
  const purge = async () => {
    setAsked(false);
    await attempt(() => call("purge", { project_id: projectId, retention_days: Number(days) }), (done) => said.forgetting.purged(done.purged));
  };
  return html`<div class="stack"><${Card} title=${said.sections.forgetting}><form class="stack tight" onSubmit=${dry}><p class="quiet">${said.forgetting.lead}</p><div class="fields"><${Field} label=${said.forgetting.days}><input name="days" type="number" min="0" value=${given.older_than_days} onInput=${(event) => change({ older_than_days: Number(event.target.value) })} /><//>
      <${Field} label=${said.forgetting.confidence}><input name="confidence" type="number" min="0" max="1" step="0.05" value=${given.below_confidence} onInput=${(event) => change({ below_confidence: Number(event.target.value) })} /><//>
      <${Field} label=${s.browse.agent}><${Select} value=${given.agent} onValue=${(agent) => change({ agent })} options=${[["", s.lessons.allAgents], ...facets.agents.map((each) => [each, each])]} /><//></div><div class="row"><button class="button" disabled=${busy} aria-busy=${busy}>${said.forgetting.dry}</button>${shown?.forgotten > 0 && html`<${Button} kind="danger" onClick=${run} busy=${busy}>${said.forgetting.run}<//>`}</div></form>
      ${shown && (shown.forgotten ? html`<div role="status"><p>${said.forgetting.would(shown.forgotten)}</p><ul class="list">${(shown.items || []).slice(0, 100).map((each) => html`<li key=${each.id} class="item"><div class="item-body"><div class="item-meta"><${KindBadge} kind=${each.kind} /><${Badge} tone="warn">${each.reason}<//></div><p><a href=${memoryHref(each)}><${Text}>${each.text || each.id}<//></a></p>${each.rule && html`<p class="small quiet">${each.rule}</p>`}</div></li>`)}</ul></div>` : html`<p class="quiet" role="status">${said.forgetting.none}</p>`)}<//>
    ${can("purge") && html`<${Card} title=${said.forgetting.purgeRun}><form class="row" onSubmit=${(event) => (event.preventDefault(), setAsked(true))}><${Field} label=${said.forgetting.purge}><input name="retention" type="number" min="0" value=${days} onInput=${(event) => setDays(event.target.value)} /><//><button class="button danger">${said.forgetting.purgeRun}</button></form><//>`}
    ${asked && html`<${Dialog} title=${said.forgetting.purgeRun} onClose=${() => setAsked(false)} actions=${html`<${Button} kind="danger" onClick=${purge}>${said.forgetting.purgeRun}<//>`}><p>${said.forgetting.purgeSure}</p><//>`}</div>`;
}
