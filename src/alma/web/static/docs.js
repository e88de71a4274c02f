// The API browser at /docs: every operation of openapi.json, its arguments and answers, and a form that sends it.
import { html, render, useEffect, useMemo, useState } from "./html.js";
import { key } from "./api.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

function operationsOf(described) {
  return Object.entries(described.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ ...methods[method], path, method: method.toUpperCase() })),
  );
}

const nameOf = (schema) => schema.$ref?.split("/").pop();

function typeOf(schema) {
  if (schema.$ref) return nameOf(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items || {})}`;
  return schema.type || "any";
}

function Fields({ schema, schemas }) {
  const found = schema.$ref ? schemas[nameOf(schema)] : schema;
  const rows = Object.entries(found?.properties || {});
  if (!rows.length) return null;
  const required = found.required || [];
  return html`<table><thead><tr><th>field</th><th>type</th><th>meaning</th></tr></thead><tbody>
    ${rows.map(([name, each]) => html`<tr key=${name}>
      <td><code>${name}</code>${required.includes(name) && html` <span class="badge accent">required</span>`}</td>
      <td class="quiet">${typeOf(each)}</td>
      <td>${each.description}${each.default !== undefined && each.default !== null && html` <span class="quiet">Default: ${JSON.stringify(each.default)}</span>`}</td>
    </tr>`)}
  </tbody></table>`;
}

/** The request that the values describe. */
function requestOf(operation, values, body) {
  const given = (place) => (operation.parameters || []).filter((each) => each.in === place && values[each.name]);
  const path = given("path").reduce((now, { name }) => now.replace(`{${name}}`, encodeURIComponent(values[name])), operation.path);
  const query = new URLSearchParams(given("query").map(({ name }) => [name, values[name]])).toString();
  const headers = Object.fromEntries(given("header").map(({ name }) => [name, values[name]]));
  if (operation.requestBody) headers["Content-Type"] = "application/json";
  return { path: query ? `${path}?${query}` : path, headers, body: operation.requestBody ? body : undefined };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(method, { path, headers, body }) {
  const said = Object.entries(headers).map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`).join("");
  const key_ = key.get() ? ` \\\n  -H 'Authorization: Bearer alma_…'` : "";
  return `curl -X ${method} ${quoted(location.origin + path)}${key_}${said}${body === undefined ? "" : ` \\\n  -d ${quoted(body)}`}`;
}

async function sent(method, { path, headers, body }) {
  const started = performance.now();
  const known = key.get();
  const all = known ? { ...headers, Authorization: `Bearer ${known}` } : headers;
  const answer = await fetch(path, { method, headers: all, body, cache: "no-store", credentials: "omit" });
  const text = await answer.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // An answer without JSON is shown as it is.
  }
  return { status: answer.status, ok: answer.ok, milliseconds: Math.round(performance.now() - started), text: shown };
}

function Form({ operation, schemas }) {
  const content = operation.requestBody?.content["application/json"];
  const inPath = (each) => each.in === "path";
  const [values, setValues] = useState(() => Object.fromEntries((operation.parameters || []).filter(inPath).map((each) => [each.name, each.example || ""])));
  const [body, setBody] = useState(content ? JSON.stringify(content.example || {}, null, 2) : "");
  const [answer, setAnswer] = useState(null);
  const request = requestOf(operation, values, body);
  const send = async (event) => {
    event.preventDefault();
    setAnswer({ text: "…" });
    setAnswer(await sent(operation.method, request).catch((error) => ({ text: `The service does not answer: ${error.message}` })));
  };
  return html`<form class="stack tight" onSubmit=${send}>
    ${operation.parameters?.length > 0 && html`<div class="fields">${operation.parameters.map((each) => html`
      <label class="field" key=${each.name} title=${each.description}>${each.name} (${each.in}${each.required ? ", required" : ""})
        <input value=${values[each.name] || ""} required=${each.required} placeholder=${each.schema.default ?? typeOf(each.schema)}
          onInput=${(event) => setValues({ ...values, [each.name]: event.currentTarget.value })} />
      </label>`)}</div>`}
    ${content && html`<label class="field">body (JSON)
      <textarea rows=${Math.min(16, body.split("\n").length + 1)} spellcheck="false" value=${body} onInput=${(event) => setBody(event.currentTarget.value)}></textarea>
    </label>`}
    <div class="row"><button class="button primary">Send</button>
      ${answer?.status && html`<span class="badge ${answer.ok ? "good" : "bad"}">${answer.status}</span><span class="quiet">${answer.milliseconds} ms</span>`}</div>
    ${answer && html`<pre class="answer" aria-live="polite">${answer.text}</pre>`}
    <pre>${curl(operation.method, request)}</pre>
    ${content && html`<h3>Arguments</h3><${Fields} schema=${content.schema} schemas=${schemas} />`}
    <h3>Answers</h3>
    ${Object.entries(operation.responses).map(([status, each]) => html`<div key=${status}><b>${status}</b> ${each.description}
      ${status < 300 && each.content?.["application/json"] && html`<${Fields} schema=${each.content["application/json"].schema} schemas=${schemas} />`}</div>`)}
  </form>`;
}

function Operation({ operation, schemas }) {
  const [open, setOpen] = useState(location.hash === `#${operation.operationId}`);
  return html`<details class="card operation" id=${operation.operationId} open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><span class="badge">${operation.method}</span> <code>${operation.path}</code> <span class="quiet">${operation.summary}</span></summary>
    ${open && html`<div class="stack"><p class="described">${operation.description}</p><${Form} operation=${operation} schemas=${schemas} /></div>`}
  </details>`;
}

function Key({ onChange, needed }) {
  const [value, setValue] = useState(key.get() || "");
  const keep = (event) => {
    event.preventDefault();
    if (value) key.set(value, false);
    else key.clear();
    onChange();
  };
  return html`<form class="row" onSubmit=${keep}><label class="field">API key${needed && " (this service needs one)"}
    <input type="password" autocomplete="off" value=${value} placeholder="alma_…" onInput=${(event) => setValue(event.currentTarget.value.trim())} /></label>
    <button class="button">Use</button></form>`;
}

function Browser() {
  const [described, setDescribed] = useState(null);
  const [problem, setProblem] = useState(0);
  const [wanted, setWanted] = useState("");
  const load = async () => {
    const answer = await sent("GET", { path: "/openapi.json", headers: {} }).catch(() => ({ status: -1 }));
    setProblem(answer.ok ? 0 : answer.status);
    setDescribed(answer.ok ? JSON.parse(answer.text) : null);
  };
  useEffect(() => void load(), []);
  const groups = useMemo(() => {
    const words = wanted.toLowerCase().split(/\s+/);
    const found = described ? operationsOf(described) : [];
    const shown = found.filter((each) => words.every((word) => `${each.method} ${each.path} ${each.summary} ${each.tags}`.toLowerCase().includes(word)));
    const byTag = new Map(shown.map((each) => [each.tags[0], []]));
    for (const each of shown) byTag.get(each.tags[0]).push(each);
    return [...byTag];
  }, [described, wanted]);
  return html`<div class="page">
    <div class="page-head"><h1>API${described && ` ${described.info.version}`}</h1>
      <div class="page-aside"><a href="/">dashboard</a><a href="/openapi.json">openapi.json</a></div></div>
    <${Key} onChange=${load} needed=${problem === 401} />
    ${problem !== 0 && problem !== 401 && html`<p class="banner bad">The service did not describe itself (${problem}).</p>`}
    ${described && html`<input type="search" aria-label="Find operations" placeholder="Find operations: retrieve, POST memories …" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} />
      ${groups.map(([tag, operations]) => html`<section class="stack tight" key=${tag}><h2>${tag}</h2>
        ${operations.map((each) => html`<${Operation} key=${each.operationId} operation=${each} schemas=${described.components.schemas} />`)}</section>`)}
      ${groups.every(([, operations]) => !operations.length) && html`<p class="quiet">No operation is like that.</p>`}`}
  </div>`;
}

render(html`<${Browser} />`, document.getElementById("app"));
