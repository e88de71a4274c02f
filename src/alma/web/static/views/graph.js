// Graph: the neighbourhood of a memory, a lesson or an entity, opened on demand, and paths between two.
import { html, useEffect, useMemo, useState } from "../html.js";
import { call } from "../api.js";
import { existed, memoryHref } from "../state.js";
import { s } from "../strings.js";
import { GraphCanvas } from "../graphview.js";
import { attempt, Button, Card, Check, Empty, Failure, KindBadge, Loading, Page, Text } from "../ui.js";

const keyOf = (node) => `${node.kind}:${node.id}`;

export default function Graph({ projectId, asOf, address }) {
  const { params, change } = address;
  const start = params.id ? { kind: params.kind || "memory", id: params.id } : null;
  const [graph, setGraph] = useState({ nodes: new Map(), edges: new Map() });
  const [state, setState] = useState({});
  const [chosen, setChosen] = useState(null);
  const [path, setPath] = useState(null);
  const [hidden, setHidden] = useState(new Set());
  const [turn, setTurn] = useState(0);

  const add = (nodes, edges) => setGraph((now) => ({
    nodes: new Map([...now.nodes, ...nodes.map((node) => [keyOf(node), { ...node, key: keyOf(node) }])]),
    edges: new Map([...now.edges, ...edges.map((edge) => [`${edge.source} ${edge.relation} ${edge.target}`, edge])]),
  }));
  const open = async (key) => {
    const [kind, ...rest] = key.split(":");
    const found = await attempt(() => call("neighbourhood", { project_id: projectId, kind, id: rest.join(":") }));
    if (found) add(found.nodes, found.edges);
  };
  useEffect(() => {
    if (!start) return;
    setGraph({ nodes: new Map(), edges: new Map() });
    setPath(null);
    setState({ loading: true });
    call("neighbourhood", { project_id: projectId, ...start }).then((found) => (add(found.nodes, found.edges), setChosen(found.center), setState({})), (error) => setState({ error }));
  }, [projectId, params.id, params.kind]);
  const nodes = useMemo(() => [...graph.nodes.values()].filter((node) => !hidden.has(node.kind) && existed(node.created_at, asOf)), [graph, hidden, asOf]);
  const shown = useMemo(() => new Set(nodes.map((node) => node.key)), [nodes]);
  const edges = useMemo(() => [...graph.edges.values()].filter((edge) => [edge.source, edge.target].every((end) => shown.has(end))), [graph, shown]);
  const kinds = [...new Set([...graph.nodes.values()].map((node) => node.kind))];
  const connect = async (node) => {
    const from = graph.nodes.get(chosen);
    const found = await attempt(() => call("find_connection", { project_id: projectId, from_kind: from.kind, from_id: from.id, to_kind: node.kind, to_id: node.id, max_steps: 6 }), (made) => (made.found ? undefined : s.graph.pathNone));
    if (!found?.found) return;
    add(found.nodes, found.edges);
    setPath(new Set(found.edges.map((edge) => `${edge.source} ${edge.target}`)));
  };
  const node = graph.nodes.get(chosen);
  return html`<${Page} title=${s.views.graph} lead=${s.graph.lead}>
    <${Card}><${Finder} label=${s.graph.start} button=${s.graph.find} projectId=${projectId} onChoose=${(found) => change({ kind: found.kind, id: found.id })} /><//>
    ${state.error && html`<${Failure} error=${state.error} />`}${state.loading && html`<${Card}><${Loading} lines=${6} /><//>`}
    ${!start && html`<${Card}><${Empty} title=${s.graph.nothing}>${s.graph.nothingWhy}<//><//>`}
    ${nodes.length > 0 && html`<div class="grid"><div class="span-8 stack tight"><div class="graph-area"><${GraphCanvas} nodes=${nodes} edges=${edges} chosen=${chosen} path=${path} reset=${turn} onChoose=${setChosen} onOpen=${open} label=${`${s.views.graph}: ${s.graph.nodes(nodes.length, edges.length)}. ${s.graph.help}`} /><span class="graph-note">${s.graph.nodes(nodes.length, edges.length)}</span></div>
        <div class="spread small"><div class="row">${kinds.map((kind) => html`<${Check} key=${kind} label=${html`<${KindBadge} kind=${kind} />`} checked=${!hidden.has(kind)} onValue=${(on) => setHidden((now) => new Set(on ? [...now].filter((each) => each !== kind) : [...now, kind]))} />`)}</div><${Button} small onClick=${() => setTurn(turn + 1)}>${s.graph.reset}<//></div><p class="small quiet">${s.graph.help}</p></div>
      <div class="span-4 stack">${node && html`<${Card} title=${s.graph.found}><div class="stack tight"><${KindBadge} kind=${node.kind} /><p><b><${Text}>${node.label}<//></b></p>${(node.agent || node.type) && html`<p class="small quiet">${[node.agent, node.type].filter(Boolean).join(", ")}</p>`}<div class="row"><${Button} small onClick=${() => open(chosen)}>${s.graph.expand}<//>${!["entity", "pattern"].includes(node.kind) && html`<a class="button small" href=${memoryHref(node)}>${s.graph.open}</a>`}</div></div><//>
        <${Card} title=${s.graph.path}><${Finder} label=${s.graph.path} button=${s.graph.pathFind} projectId=${projectId} onChoose=${connect} /><//>`}
        <${Card} title=${s.graph.asList}><ul class="stack tight small">${edges.filter((edge) => edge.source === chosen || edge.target === chosen).slice(0, 60).map((edge) => {
          const other = graph.nodes.get(edge.source === chosen ? edge.target : edge.source);
          return html`<li key=${edge.source + edge.relation + edge.target}><button type="button" class="link" onClick=${() => setChosen(other.key)}><span class="quiet">${edge.relation.replaceAll("_", " ")}</span> <${Text} longest=${120}>${other.label}<//></button></li>`;
        })}</ul><//></div></div>`}<//>`;
}

function Finder({ label, button, projectId, onChoose }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(null);
  const find = async (event) => {
    event.preventDefault();
    setFound(await attempt(() => call("find_nodes", { project_id: projectId, words, limit: 6 })));
  };
  const choose = (node) => {
    setFound(null);
    onChoose(node);
  };
  return html`<form class="row" onSubmit=${find}><input name="words" required aria-label=${label} placeholder=${s.graph.startHint} value=${words} onInput=${(event) => setWords(event.target.value)} /><button class="button">${button}</button></form>
    ${found && html`<ul class="stack tight choices" aria-live="polite">${found.nodes.length ? found.nodes.map((node) => html`<li key=${keyOf(node)}><button type="button" class="link" onClick=${() => choose(node)}><${KindBadge} kind=${node.kind} /> <${Text} longest=${160}>${node.label}<//></button></li>`) : html`<li class="quiet">${s.ask.whyNotNone}</li>`}</ul>`}`;
}
