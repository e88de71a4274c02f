// Ask: what an agent would be given for a task, why, and what was left out.
import { html, useState } from "../html.js";
import { call, key } from "../api.js";
import { memoryHref, useCall, useDraft } from "../state.js";
import { s } from "../strings.js";
import { Badge, Button, Card, Check, CopyButton, Empty, Field, fromLocal, Input, Item, KindBadge, Loading, Page, Result, ScoreBar, Tabs, Text, toLocal } from "../ui.js";

const GROUPS = { heuristics: "heuristic", anti_patterns: "anti_pattern", preferences: "user_preference", domain_knowledge: "domain_knowledge", outcomes: "outcome", memories: "memory", instructions: "memory" };
const TEXT = { heuristic: ["condition", "strategy"], anti_pattern: ["why_bad", "pattern"], user_preference: ["category", "preference"], domain_knowledge: ["domain", "fact"], outcome: ["strategy_used", "task_description"], memory: ["title", "content"] };

/** The records of an answer as rows, best first. */
function rowsOf(data) {
  const reasons = new Map((data.explanations || []).map((each) => [each.id, each]));
  const rows = Object.entries(GROUPS).flatMap(([group, kind]) => (data[group] || []).map((each) => {
    const [title, text] = TEXT[kind];
    const agent = each.agent || each.source_agent;
    return { kind, id: each.id, title: each[title], text: each[text] || each[title], agent, success: kind === "outcome" ? each.success : undefined, created_at: each.created_at || each.timestamp, why: reasons.get(each.id), notes: (data.notes || {})[each.id] || [] };
  }));
  return rows.sort((a, b) => (b.why?.score ?? 0) - (a.why?.score ?? 0));
}

export default function Ask({ projectId, asOf, address, facets }) {
  const { params, change } = address;
  const agent = params.agent || facets.agents[0] || "";
  const given = { project_id: projectId, task: params.task, agent, user_id: params.user, max_tokens: Number(params.budget) || 2000, top_k: Number(params.top_k) || 5, weak: params.weak === "yes", explain: true };
  const ready = params.task && agent;
  const answer = useCall(ready ? "retrieve" : null, { ...given, as_of: asOf });
  const [task, setTask] = useDraft(params.task || "");
  const submit = (event) => {
    event.preventDefault();
    change({ task: task.trim(), agent: event.currentTarget.elements.agent.value });
  };
  return html`<${Page} title=${s.views.ask} lead=${s.ask.lead}>
    <form class="card stack tight" onSubmit=${submit}>
      <${Field} label=${s.ask.task} wide><textarea name="task" rows="2" required placeholder=${s.ask.taskHint} value=${task} onInput=${(event) => setTask(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && (event.preventDefault(), event.currentTarget.form.requestSubmit())}></textarea><//>
      <div class="fields"><${Field} label=${s.ask.agent}><${Input} name="agent" required value=${agent} suggestions=${facets.agents} onValue=${(value) => change({ agent: value })} /><//>
        <${Field} label=${s.ask.user}><${Input} name="user" value=${params.user || ""} suggestions=${facets.users} onValue=${(value) => change({ user: value })} /><//>
        <${Field} label=${s.ask.budget}><${Input} name="budget" type="number" min="0" max="100000" value=${params.budget || "2000"} onValue=${(value) => change({ budget: value === "2000" ? "" : value })} /><//>
        <${Field} label=${s.ask.topK}><${Input} name="top_k" type="number" min="1" max="100" value=${params.top_k || "5"} onValue=${(value) => change({ top_k: value === "5" ? "" : value })} /><//></div>
      <div class="spread"><${Check} label=${s.ask.weak} checked=${params.weak === "yes"} onValue=${(on) => change({ weak: on ? "yes" : "" })} /><button class="button primary">${s.ask.ask}</button></div>
    </form>
    ${!ready ? html`<${Card}><${Empty} title=${s.ask.empty}>${s.ask.emptyWhy}<//><//>` : html`<${Result} of=${answer} lines=${8}>${(data) => html`<${Answer} data=${data} given=${given} asOf=${asOf} address=${address} />`}<//>`}<//>`;
}

function Answer({ data, given, asOf, address }) {
  const rows = rowsOf(data);
  const left = new Map((data.dropped || []).map((each) => [each.row.id, each]));
  const dropped = [...left.values()].filter((each) => !rows.some((row) => row.id === each.row.id));
  const longest = Math.max(0.001, ...rows.map((row) => Object.values(row.why?.terms || {}).reduce((sum, value) => sum + Math.abs(value), 0)));
  return html`<div class="grid"><div class="span-7 stack">
      <${Card} title=${s.ask.found(data.total_items, Math.round(data.retrieval_time_ms || 0))} aside=${data.degraded && html`<${Badge} tone="warn">${data.degraded}<//>`}>
        ${rows.length ? html`<div class="list">${rows.map((row) => html`<${Found} key=${row.kind + row.id} row=${row} left=${left.get(row.id)} longest=${longest} />`)}</div>` : html`<${Empty} title=${s.ask.nothing}>${s.ask.nothingWhy}<//>`}<//>
      ${dropped.length > 0 && html`<${Card} title=${s.ask.dropped}><p class="quiet small">${s.ask.droppedWhy}</p><div class="list">
        ${dropped.map((each) => html`<${Item} key=${each.row.kind + each.row.id} row=${each.row} href=${memoryHref(each.row)}><p class="small"><${Badge}>${each.stage}<//> <${Text}>${each.reason}<//></p><//>`)}</div><//>`}</div>
    <div class="span-5 stack"><${Prompt} data=${data} budget=${given.max_tokens} />
      ${!asOf && html`<${Recommendation} given=${given} />`}
      ${!asOf && html`<${WhyNot} given=${given} />`}
      <${Compare} rows=${rows} given=${given} address=${address} />
      <${AsCode} given=${given} asOf=${asOf} /></div></div>`;
}

/** A memory that was found; `left` is why it is not in the prompt. */
const Found = ({ row, left, longest }) => html`<${Item} row=${row} href=${memoryHref(row)} aside=${row.why && html`<b title=${s.ask.score}>${row.why.score.toFixed(2)}</b>`}>
    ${row.why && html`<${ScoreBar} terms=${row.why.terms} longest=${longest} /><p class="small quiet">${s.ask.foundBy} ${row.why.found_by.join(", ")}${row.why.relevance !== undefined && ` · ${s.ask.relevance} ${row.why.relevance.toFixed(2)}`}</p>`}
    ${left && html`<p class="small"><${Badge} tone="warn">${s.ask.notInPrompt}<//> <${Text}>${left.reason}<//></p>`}
    ${row.notes.map((note) => html`<p key=${note} class="small quiet"><${Text}>${note}<//></p>`)}<//>`;

const Prompt = ({ data, budget }) => html`<${Card} title=${s.ask.prompt} aside=${html`<span>${s.ask.promptOf(data.prompt_tokens, budget)}</span><${CopyButton} text=${data.prompt} />`}>
    ${data.prompt ? html`<pre tabindex="0" dir="auto">${data.prompt}</pre>` : html`<p class="quiet">${s.ask.promptEmpty}</p>`}<//>`;

function Recommendation({ given }) {
  const advice = useCall("recommend", { project_id: given.project_id, task: given.task, agent: given.agent });
  return html`<${Card} title=${s.ask.recommended}><${Result} of=${advice} lines=${2}>${(data) => html`<div class="stack tight">${data.strategy && html`<p><b><${Text}>${data.strategy}<//></b></p>`}<p class="small quiet"><${Badge} tone=${data.support === "supported" ? "good" : ""}>${data.support}<//> <${Text}>${data.reason}<//></p></div>`}<//><//>`;
}

function WhyNot({ given }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({});
  const explain = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      let candidates = [{ kind: "", id: text.trim(), label: text.trim() }];
      if (text.trim().includes(" ") || text.trim().length < 16) {
        const { nodes } = await call("find_nodes", { project_id: given.project_id, words: text, limit: 3, user_id: given.user_id });
        candidates = nodes.filter((node) => node.kind !== "entity").slice(0, 4);
      }
      const answers = await Promise.all(candidates.map(async (node) => ({ node, why: (await call("retrieve", { ...given, explain: false, why_not: node.id })).why_not })));
      setState({ answers });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<${Card} title=${s.ask.whyNot}><form class="row" onSubmit=${explain}><input name="why_not" required aria-label=${s.ask.whyNot} placeholder=${s.ask.whyNotHint} value=${text} onInput=${(event) => setText(event.target.value)} /><button class="button">${s.ask.whyNotFind}</button></form>
    ${state.busy && html`<${Loading} lines=${2} />`}${state.error && html`<p class="failure">${state.error.message}</p>`}
    ${state.answers && (state.answers.length ? html`<ul class="stack tight" aria-live="polite">${state.answers.map(({ node, why }) => html`<li key=${node.id} class="small">${node.kind && html`<${KindBadge} kind=${node.kind} /> `}<${Text}>${node.label}<//><br />${why ? html`<${Badge}>${why.stage}<//> ${why.reason}` : html`<${Badge} tone="good">${s.ask.whyNotIn}<//>`}</li>`)}</ul>` : html`<p class="quiet">${s.ask.whyNotNone}</p>`)}<//>`;
}

/** The same question at another time. */
function Compare({ rows, given, address }) {
  const then = address.params.then;
  const other = useCall(then ? "retrieve" : null, { ...given, as_of: then });
  const input = html`<input type="datetime-local" aria-label=${s.ask.compare} value=${toLocal(then)} max=${toLocal(new Date())} onChange=${(event) => address.change({ then: fromLocal(event.target.value) })} />`;
  return html`<${Card} title=${s.ask.compare} aside=${then && html`<${Button} small onClick=${() => address.change({ then: "" })}>${s.ask.compareOff}<//>`}><div class="stack tight">${input}
    ${then && html`<${Result} of=${other} lines=${3}>${(data) => {
      const before = rowsOf(data);
      const ids = new Set(before.map((row) => row.id));
      const now = new Set(rows.map((row) => row.id));
      const list = (title, some) => some.length > 0 && html`<h3>${title}</h3><ul class="stack tight small">${some.map((row) => html`<li key=${row.id}><${KindBadge} kind=${row.kind} /> <${Text} longest=${200}>${row.text}<//></li>`)}</ul>`;
      return html`<div class="stack tight">${list(s.ask.added, rows.filter((row) => !ids.has(row.id)))}${list(s.ask.gone, before.filter((row) => !now.has(row.id)))}<p class="quiet small">${s.ask.same(rows.filter((row) => ids.has(row.id)).length)}</p></div>`;
    }}<//>`}</div><//>`;
}

function AsCode({ given, asOf }) {
  const [chosen, setChosen] = useState("python");
  const { task, agent, ...further } = { ...given, explain: undefined, weak: given.weak || undefined, as_of: asOf };
  const asked = Object.fromEntries(Object.entries({ task, agent, ...further }).filter(([, value]) => value !== undefined && value !== ""));
  const json = JSON.stringify(asked, null, 1).replaceAll(/\n */g, " ");
  const named = Object.entries(asked).map(([name, value]) => `        ${name}=${pythonOf(value)},\n`).join("");
  const hasKey = Boolean(key.get());
  const codes = {
    python: `${hasKey ? "import os\n\n" : ""}from alma.client import Client\n\nwith Client("${location.origin}"${hasKey ? ', os.environ["ALMA_KEY"]' : ""}) as alma:\n    found = alma.retrieve(\n${named}    )\n    print(found.prompt)`,
    curl: `curl ${location.origin}/v1/operations/retrieve \\\n${hasKey ? '  -H "Authorization: Bearer $ALMA_KEY" \\\n' : ""}  -H 'Content-Type: application/json' \\\n  -d '${json.replaceAll("'", "'\\''")}'`,
    mcp: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "retrieve", arguments: asked } }, null, 2),
  };
  return html`<${Card} title=${s.ask.asCode} aside=${html`<${CopyButton} text=${codes[chosen]} />`}><${Tabs} label=${s.ask.asCode} chosen=${chosen} onChoose=${setChosen} tabs=${[["python", "Python"], ["curl", "curl"], ["mcp", "MCP"]]} /><pre tabindex="0">${codes[chosen]}</pre>${hasKey && html`<p class="small quiet">${s.ask.keyInCode}</p>`}<//>`;
}

const pythonOf = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
