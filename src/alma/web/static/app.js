// The frame of the dashboard: navigation, sign-in, the moment that is shown, and the view of the address.
import { html, render, useCallback, useEffect, useState } from "./html.js";
import { call, key, onConnection } from "./api.js";
import { hrefOf, reloadAll, useAddress, useCall } from "./state.js";
import { s, when } from "./strings.js";
import { Button, Check, Failure, Field, fromLocal, Input, Loading, Select, Slider, toast, Toasts, toLocal } from "./ui.js";

const VIEWS = ["overview", "ask", "browse", "lessons", "time", "graph", "review", "work", "operations"];
const ICONS = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z",
  ask: "M4 5h16v11H9l-5 4z",
  browse: "M4 6h16M4 12h16M4 18h10",
  lessons: "M12 4 3 9l9 5 9-5zM6 11v5c3 3 9 3 12 0v-5",
  time: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  graph: "M6 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM18 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 20a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 6.6l8 2.8M7 8l1.6 8M16 11.4 10.6 17",
  review: "M4 6h16v12H4zM4 13h5l1 2h4l1-2h5",
  work: "M8 6V4h8v2M3 6h18v13H3zM3 12h18",
  operations: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6M12 3v3M12 18v3M3 12h3M18 12h3M6 6l2 2M16 16l2 2M18 6l-2 2M8 16l-2 2",
};
const THEME = "alma.theme";
const NO_FACETS = { projects: [], agents: [], users: [], types: [], tags: [], domains: [], sources: [], sessions: {} };

function useTheme() {
  const [theme, setTheme] = useState(() => localStorage.getItem(THEME) || "system");
  useEffect(() => {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [theme, setTheme];
}

/** Who is here: {me, error, wantsKey}. */
function useMe() {
  const [state, setState] = useState({});
  const load = useCallback(async () => {
    try {
      setState({ me: await call("whoami") });
    } catch (error) {
      setState(error.status === 401 ? { wantsKey: true, wrong: Boolean(key.get()) } : { error });
    }
  }, []);
  useEffect(() => {
    load();
  }, []);
  return { ...state, load };
}

function Login({ wrong, done }) {
  const [text, setText] = useState("");
  const [keep, setKeep] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    key.set(text.trim(), keep);
    done();
  };
  return html`<main class="login"><form class="card" onSubmit=${submit}><img src=${new URL("icon.svg", import.meta.url)} alt="" width="40" height="40" />
      <h1>${s.login.title}</h1><p class="quiet">${s.login.why}</p>${wrong && html`<p class="failure" role="alert">${s.login.wrong}</p>`}
      <${Field} label=${s.login.key} wide><input type="password" autocomplete="current-password" required value=${text} onInput=${(event) => setText(event.target.value)} autofocus /><//>
      <${Check} label=${s.login.keep} checked=${keep} onValue=${setKeep} />
      <button class="button primary">${s.login.enter}</button><p class="quiet small">${s.login.make}</p></form></main>`;
}

function Moment({ address }) {
  const { t } = address.params;
  const [open, setOpen] = useState(Boolean(t));
  useEffect(() => setOpen(Boolean(t)), [t]);
  if (!open && !t) return html`<${Button} small onClick=${() => setOpen(true)} title=${s.timeSet}>${s.theTime}: ${s.timeNow}<//>`;
  return html`<label class="moment"><span>${s.theTime}</span><input type="datetime-local" value=${toLocal(t)} max=${toLocal(new Date())}
      onChange=${(event) => address.change({ t: fromLocal(event.target.value) })} /></label>`;
}

function Frame({ me, load }) {
  const address = useAddress();
  const [theme, setTheme] = useTheme();
  const [open, setOpen] = useState(false);
  const [online, setOnline] = useState(true);
  const project = address.params.project || me.project_id;
  const facets = useCall("list_facets", { project_id: project }, { live: false }).data || NO_FACETS;
  useEffect(() => onConnection((now) => {
    setOnline(now);
    if (now) {
      toast(s.back);
      reloadAll();
    }
  }), []);
  useEffect(() => setOpen(false), [address.view, JSON.stringify(address.params)]);
  const can = (operation) => me.operations.includes(operation);
  const page = VIEWS.includes(address.view) || address.view === "memory" ? address.view : "overview";
  return html`<a class="skip" href="#content" onClick=${(event) => (event.preventDefault(), document.querySelector("#content h1")?.focus())}>${s.skip}</a>
    <div class="frame ${open ? "menu-open" : ""}">
      <header class="top"><button type="button" class="button menu-button" aria-expanded=${open} aria-controls="nav" onClick=${() => setOpen(!open)}><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 7h16M4 12h16M4 17h16" /></svg><span class="unseen">${s.menu}</span></button>
        <a class="brand" href=${hrefOf("overview")}><img src=${new URL("icon.svg", import.meta.url)} alt="" width="26" height="26" /> ${s.product}</a>
        <div class="top-tools"><label class="top-project"><span>${s.project}</span><${Input} aria-label=${s.project} value=${project} suggestions=${facets.projects}
            onValue=${(value) => address.change({ project: value === me.project_id ? "" : value })} /></label><${Moment} address=${address} /></div></header>
      <nav id="nav" class="nav" aria-label=${s.menu}><ul>${VIEWS.map((view) => html`<li key=${view}><a href=${hrefOf(view)} aria-current=${page === view ? "page" : undefined}><svg viewBox="0 0 24 24" aria-hidden="true"><path d=${ICONS[view]} /></svg>${s.views[view]}</a></li>`)}</ul>
        <div class="nav-foot">${me.key_name && html`<p class="quiet small">${me.key_name}${!can("create_memory") && html` · ${s.readOnly}`}</p>`}
          <label class="small"><span class="quiet">${s.theme}</span><${Select} value=${theme} onValue=${setTheme} options=${Object.entries(s.themes)} /></label>
          ${key.get() && html`<${Button} small onClick=${() => (key.clear(), location.reload())}>${s.login.out}<//>`}<p class="quiet small">ALMA ${me.version}</p></div></nav>
      <main id="content" class="content">
        ${!online && html`<div class="banner bad" role="alert">${s.offline}</div>`}
        ${address.params.t && html`<div class="banner"><span>${s.timePast(when(address.params.t))}</span>${page !== "time" && html`<${Slider} label=${s.time.slider} asOf=${address.params.t} range=${Number(address.params.range) || 30} change=${address.change} />`}<${Button} small onClick=${() => address.change({ t: "" })}>${s.backToNow}<//></div>`}
        <${View} key=${page} name=${page} ctx=${{ me, can, project, projectId: project, asOf: address.params.t, address, facets, reloadMe: load }} />
      </main></div><${Toasts} />`;
}

/** A view, whose module is fetched when it is opened. */
function View({ name, ctx }) {
  const [made, setMade] = useState({});
  useEffect(() => {
    import(`./views/${name}.js`).then((module) => setMade({ view: module.default }), (error) => setMade({ error }));
  }, [name]);
  useEffect(() => {
    document.title = `${s.views[name]} · ${s.product}`;
    if (made.view && sessionStorage.getItem("alma.opened")) document.querySelector("#content h1")?.focus({ preventScroll: true });
    if (made.view) sessionStorage.setItem("alma.opened", "yes");
  }, [made.view]);
  if (made.error) return html`<${Failure} error=${made.error} retry=${() => location.reload()} />`;
  return made.view ? html`<${made.view} ...${ctx} />` : html`<${Loading} lines=${6} />`;
}

function App() {
  const { me, error, wantsKey, wrong, load } = useMe();
  useEffect(() => {
    document.documentElement.dataset.theme = localStorage.getItem(THEME) || "system";
    addEventListener("alma:reload", load);
    addEventListener("alma:signed-out", load);
    return () => (removeEventListener("alma:reload", load), removeEventListener("alma:signed-out", load));
  }, []);
  if (wantsKey) return html`<${Login} wrong=${wrong} done=${load} /><${Toasts} />`;
  if (me) return html`<${Frame} me=${me} load=${load} />`;
  return html`<main class="login">${error ? html`<${Failure} error=${error} retry=${load} />` : html`<${Loading} />`}</main>`;
}

// The module of the view is fetched while the service says who is here.
const first = location.hash.replace(/^#\/?/, "").split("?")[0] || "overview";
if (VIEWS.includes(first)) import(`./views/${first}.js`).catch(() => {});
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
