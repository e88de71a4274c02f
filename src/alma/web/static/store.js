// The store itself: backups, imports, indexes and the audit log.
import { html, useRef, useState } from "./html.js";
import { call } from "./api.js";
import { reloadAll, useCall } from "./state.js";
import { bytes, number, s } from "./strings.js";
import { attempt, Badge, Button, Card, Check, Empty, Field, Input, Loading, Result, Text, Time } from "./ui.js";

const said = s.operations;
const BATCH = 100;
const BATCH_BYTES = 500000;

export function Backups({ can }) {
  const backups = useCall("list_backups", {});
  const [busy, setBusy] = useState(false);
  const create = async () => {
    setBusy(true);
    await attempt(() => call("create_backup"), (made) => said.backups.written(made.name, bytes(made.size_bytes)));
    setBusy(false);
    backups.reload();
  };
  return html`<${Card} title=${said.sections.backups} aside=${can("create_backup") && html`<${Button} busy=${busy} onClick=${create}>${busy ? said.backups.running : said.backups.create}<//>`}><p class="quiet">${said.backups.lead} <code>${said.backups.restore}</code></p>
    <${Result} of=${backups} empty=${[(data) => !data.backups.length, html`<${Empty} title=${said.backups.none} />`]}>${(data) => html`<div class="table-wrap"><table><tbody>${data.backups.map((each) => html`<tr key=${each.name}><td><code>${each.name}</code></td><td>${each.form}</td><td class="num">${bytes(each.size_bytes)}</td><td class="narrow"><${Time} at=${each.written_at} /></td></tr>`)}</tbody></table></div>`}<//><//>`;
}

/** The lines of a file as objects; a line that is none is an error with its number. */
function parsed(text) {
  return text.split("\n").flatMap((line, i) => {
    if (!line.trim()) return [];
    try {
      const made = JSON.parse(line);
      if (made && typeof made === "object" && !Array.isArray(made)) return [made];
    } catch {
      // Said below.
    }
    throw new Error(said.imports.bad(i + 1));
  });
}

function* batches(lines) {
  let some = [];
  let size = 0;
  for (const line of lines) {
    const length = JSON.stringify(line).length;
    if (some.length && (some.length >= BATCH || size + length > BATCH_BYTES)) {
      yield some;
      [some, size] = [[], 0];
    }
    some.push(line);
    size += length;
  }
  if (some.length) yield some;
}

export function Imports({ projectId }) {
  const file = useRef(null);
  const stop = useRef(false);
  const [state, setState] = useState({});
  const start = async (event) => {
    event.preventDefault();
    stop.current = false;
    const sum = { stored: 0, merged: 0, aside: 0 };
    await attempt(async () => {
      const lines = parsed(await file.current.files[0].text());
      let done = 0;
      setState({ done, all: lines.length, busy: true });
      for (const some of batches(lines)) {
        if (stop.current) break;
        const answer = await call("import_lines", { project_id: projectId, lines: some });
        done += some.length;
        sum.stored += answer.stored;
        sum.merged += answer.merged;
        sum.aside += answer.quarantined + answer.refused;
        setState({ done, all: lines.length, busy: true });
      }
    });
    setState((now) => ({ ...now, busy: false, sum }));
    reloadAll();
  };
  return html`<${Card} title=${said.sections.imports}><form class="stack tight" onSubmit=${start}><p class="quiet">${said.imports.lead}</p><${Field} label=${said.imports.file}><input ref=${file} name="file" type="file" accept=".jsonl,.ndjson,.json,.txt" required /><//>
      <div class="row"><button class="button primary" disabled=${state.busy}>${said.imports.start}</button>${state.busy && html`<${Button} onClick=${() => (stop.current = true)}>${said.imports.cancel}<//>`}</div>
      ${state.all !== undefined && html`<progress max=${state.all || 1} value=${state.done} aria-label=${said.sections.imports}></progress><p role="status">${said.imports.progress(number(state.done), number(state.all))}${state.sum && html` · ${said.imports.done(state.sum.stored, state.sum.merged, state.sum.aside)}`}</p>`}</form><//>`;
}

export function Sync({ can }) {
  const status = useCall("sync_status", {});
  const [state, setState] = useState({});
  const run = (name, given) => async () => {
    setState({ busy: name });
    const result = await attempt(() => call(name, given));
    setState({ result: result && { name, ...result } });
    reloadAll();
  };
  const act = (name, label, given, kind) => can(name) && html`<${Button} small kind=${kind || "plain"} busy=${Boolean(state.busy)} onClick=${run(name, given)}>${label}<//>`;
  return html`<${Card} title=${said.sections.sync} aside=${html`${act("sync_run", said.sync.run)}${act("sync_verify", said.sync.verify)}${act("reindex_memories", said.sync.reindex)}`}><p class="quiet">${said.sync.lead}</p>
    <${Result} of=${status} empty=${[(data) => !data.engines.filter((each) => each.is_configured).length, html`<${Empty} title=${said.sync.none} />`]}>${(data) => html`<div class="table-wrap"><table><tbody>${data.engines.filter((each) => each.is_configured || each.state !== "unused").map((each) => html`<tr key=${each.engine}><td><b>${each.engine}</b>${each.problem && html`<div class="small"><${Text}>${each.problem}<//></div>`}</td><td><${Badge} tone=${["degraded", "parked"].includes(each.state) ? "bad" : each.pending ? "warn" : "good"}>${each.state}<//></td><td>${said.sync.behind(each.pending)}</td>
      <td class="hide-narrow">${each.verified && html`${each.verified.is_consistent ? said.sync.healthy : said.sync.issues(each.verified.issues)} <${Time} at=${each.verified.at} />`}</td><td class="narrow"><div class="row">${act("sync_repair", said.sync.repair, { engine: each.engine })}${each.parked > 0 && act("sync_retry_parked", said.sync.retry, { engine: each.engine })}</div></td></tr>`)}</tbody></table></div>`}<//>
    ${state.busy && html`<${Loading} lines=${2} />`}${state.result && html`<details open><summary>${said.sync.result}</summary><pre tabindex="0">${JSON.stringify(state.result, null, 2)}</pre></details>`}<//>`;
}

export function Audit({ can, asOf, address }) {
  const { params, change } = address;
  const given = { action: params.action, agent: params.agent, resource_type: params.type, success: params.failures === "yes" ? false : undefined, until: asOf, limit: 50 };
  const first = useCall("list_audit", given);
  const [more, setMore] = useState({ events: [], of: null });
  const [verified, setVerified] = useState(null);
  const mine = more.of === first.data ? more : { events: [] };
  const next = mine.events.length ? mine.next : first.data?.next_before;
  const load = async () => {
    const page = await attempt(() => call("list_audit", { ...given, before: next }));
    if (page) setMore({ of: first.data, events: [...mine.events, ...page.events], next: page.next_before });
  };
  const verify = async () => {
    setVerified({ busy: true });
    setVerified(await attempt(() => call("verify_audit")));
  };
  const columns = said.audit.columns;
  return html`<${Card} title=${said.sections.audit} aside=${can("verify_audit") && html`<${Button} busy=${verified?.busy} onClick=${verify}>${said.audit.verify}<//>`}>
    ${verified && !verified.busy && html`<div role="status">${verified.ok ? html`<p class="banner ok">${said.audit.ok(verified.checked, verified.chains)}</p>` : html`<div class="failure"><p>${said.audit.bad(verified.findings.length)}</p></div><pre>${JSON.stringify(verified.findings, null, 2)}</pre>`}</div>`}
    <div class="fields"><${Field} label=${said.audit.action}><${Input} name="action" value=${params.action || ""} suggestions=${["create", "update", "delete", "archive", "restore", "purge", "configure", "revoke"]} onValue=${(action) => change({ action })} /><//><${Field} label=${s.browse.agent}><${Input} name="agent" value=${params.agent || ""} onValue=${(agent) => change({ agent })} /><//><${Check} label=${said.audit.failures} checked=${params.failures === "yes"} onValue=${(on) => change({ failures: on ? "yes" : "" })} /></div>
    <${Result} of=${first} empty=${[(data) => !data.events.length, html`<${Empty} title=${said.audit.nothing} />`]}>${(data) => html`<div class="table-wrap"><table><thead><tr><th>${columns.at}</th><th>${columns.who}</th><th>${columns.action}</th><th>${columns.what}</th><th>${columns.ok}</th></tr></thead><tbody>${[...data.events, ...mine.events].map((each) => html`<tr key=${each.id}><td class="narrow"><${Time} at=${each.created_at} /></td><td>${[each.user_id, each.agent_id, each.ip_address].filter(Boolean).join(", ")}</td><td>${each.action}</td><td><span class="small">${each.resource_type}</span> <code class="small">${each.resource_id}</code>${each.error_message && html`<div class="small"><${Text} longest=${400}>${each.error_message}<//></div>`}</td><td><${Badge} tone=${each.success ? "good" : "bad"}>${each.success ? said.audit.done : said.audit.refused}<//></td></tr>`)}</tbody></table></div>
      ${next && html`<${Button} onClick=${load}>${s.more}<//>`}`}<//><//>`;
}
