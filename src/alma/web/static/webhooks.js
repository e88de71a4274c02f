// Webhooks: what waits for each, and adding and removing them.
import { html, useState } from "./html.js";
import { call } from "./api.js";
import { useCall } from "./state.js";
import { s } from "./strings.js";
import { attempt, Badge, Button, Card, Check, CopyButton, Dialog, Empty, Field, Input, Result, Text, Time } from "./ui.js";

const said = s.operations.webhooks;

export function Webhooks({ can, facets }) {
  const hooks = useCall("list_webhooks", {});
  const [made, setMade] = useState(null);
  const [asked, setAsked] = useState(null);
  const retry = async (each) => {
    if (await attempt(() => call("retry_webhook", { name: each.name }), (done) => said.retried(done.retried))) hooks.reload();
  };
  const remove = async (each) => {
    setAsked(null);
    if (await attempt(() => call("remove_webhook", { name: each.name }), said.removed)) hooks.reload();
  };
  const done = (answer) => (setMade(answer), hooks.reload());
  return html`<div class="stack">${can("add_webhook") && html`<${AddWebhook} facets=${facets} done=${done} />`}
    ${made && html`<div class="banner" role="status"><div class="stack tight"><span>${said.made(made.name)}</span><code class="token">${made.secret}</code></div><${CopyButton} text=${made.secret} /></div>`}
    <${Card} title=${s.operations.sections.webhooks}><p class="quiet">${said.lead}</p><${Result} of=${hooks} empty=${[(data) => !data.webhooks.length, html`<${Empty} title=${said.none} />`]}>${(data) => html`<div class="table-wrap"><table><tbody>${data.webhooks.map((each) => html`<tr key=${each.name}><td><b><${Text}>${each.name}<//></b><div class="small quiet"><${Text}>${[each.host, each.project_id, each.is_configured && said.configured].filter(Boolean).join(", ")}<//></div></td>
      <td class="hide-narrow small quiet">${each.events.length > 0 && html`<div>${each.events.join(", ")}</div>`}${each.kinds.length < MANY && each.kinds.map((kind) => s.kinds[kind] || kind).join(", ")}</td><td><${Badge} tone=${each.parked ? "bad" : each.waiting ? "warn" : "good"}>${said.waiting(each.waiting)}<//> <${Time} at=${each.oldest} />${each.parked > 0 && html` ${said.parked(each.parked)}`}</td>
      <td class="narrow"><div class="row">${each.parked > 0 && can("retry_webhook") && html`<${Button} small onClick=${() => retry(each)}>${said.retry}<//>`}${!each.is_configured && can("remove_webhook") && html`<${Button} small kind="danger" onClick=${() => setAsked(each)}>${said.remove}<//>`}</div></td></tr>`)}</tbody></table></div>`}<//><//>
    ${asked && html`<${Dialog} title=${said.remove} onClose=${() => setAsked(null)} actions=${html`<${Button} kind="danger" onClick=${() => remove(asked)}>${said.remove}<//>`}><p>${said.removeSure(asked.name, asked.waiting)}</p><//>`}</div>`;
}

// A webhook of as many kinds gets all of them.
const MANY = 10;
const EVENTS = ["created", "updated", "deleted", "archived", "restored"];

function AddWebhook({ facets, done }) {
  const empty = { name: "", url: "", project_id: "", events: [] };
  const [given, setGiven] = useState(empty);
  const change = (more) => setGiven((now) => ({ ...now, ...more }));
  const submit = async (event) => {
    event.preventDefault();
    const answer = await attempt(() => call("add_webhook", { ...given, project_id: given.project_id || undefined }));
    if (answer) setGiven(empty), done(answer);
  };
  return html`<${Card} title=${said.add}><form class="stack tight" onSubmit=${submit}><div class="fields"><${Field} label=${said.name}><input name="name" required maxlength="100" value=${given.name} onInput=${(event) => change({ name: event.target.value })} /><//>
      <${Field} label=${said.url}><input name="url" type="url" required maxlength="2000" value=${given.url} onInput=${(event) => change({ url: event.target.value })} /><//>
      <${Field} label=${said.project}><${Input} name="project_id" value=${given.project_id} suggestions=${facets.projects} onValue=${(project_id) => change({ project_id })} /><//></div>
    <fieldset class="row"><legend class="small quiet">${said.events}</legend>${EVENTS.map((name) => html`<${Check} key=${name} label=${name} checked=${given.events.includes(name)} onValue=${(on) => change({ events: on ? [...given.events, name] : given.events.filter((each) => each !== name) })} />`)}</fieldset>
    <div><button class="button primary">${said.add}</button></div></form><//>`;
}
