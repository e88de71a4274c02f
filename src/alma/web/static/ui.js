// The components that every view is made of.
import { html, useEffect, useRef, useState } from "./html.js";
import { useDraft } from "./state.js";
import { ago, percent, points, s, when } from "./strings.js";

let serial = 0;
const toastListeners = new Set();
/** What can be undone, newest last; it stays when its notice is gone. */
const undoable = [];

/** A name for an element that no other one has. */
export function useName(prefix) {
  const ref = useRef(null);
  ref.current ||= `${prefix}-${++serial}`;
  return ref.current;
}

export const Button = ({ children, kind = "plain", small, busy, ...rest }) =>
  html`<button type="button" class="button ${kind} ${small ? "small" : ""}" disabled=${busy} ...${rest}>${children}</button>`;

export const Card = ({ title, aside, children, className = "", level = 2, label }) => html`
  <section class="card ${className}" aria-label=${label || title}>
    ${(title || aside) && html`<header class="card-head">${title && (level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`)}<div class="card-aside">${aside}</div></header>`}
    ${children}
  </section>`;

export const Badge = ({ children, tone = "" }) => html`<span class="badge ${tone}">${children}</span>`;
export const KindBadge = ({ kind }) => html`<span class="badge kind k-${kind}">${s.kind[kind] || kind}</span>`;

export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${when(at)}>${ago(at)}</time>` : null);

/** Text of a memory: directions of writing stay inside of it, and long texts are cut until asked for. */
export function Text({ children, longest = 20000, block }) {
  const [whole, setWhole] = useState(false);
  const text = String(children ?? "");
  const shown = whole || text.length <= longest ? text : text.slice(0, longest);
  const cls = block ? "text block" : "text";
  return html`<bdi class=${cls}>${shown}</bdi>${shown.length < text.length &&
  html`<p class="quiet">${s.memory.longest} <${Button} small onClick=${() => setWhole(true)}>${s.memory.showAll}<//></p>`}`;
}

export const Loading = ({ lines = 4 }) => html`
  <div class="skeleton" role="status" aria-label=${s.loading}>${Array.from({ length: lines }, (_, i) => html`<span key=${i}></span>`)}</div>`;

export const Empty = ({ title, children, action }) => html`
  <div class="empty"><svg viewBox="0 0 48 48" aria-hidden="true"><circle cx="24" cy="24" r="15" /><path d="M17 26c4-7 10-7 14 0" /></svg>
    <p class="empty-title">${title}</p>${children && html`<p class="quiet">${children}</p>`}${action}</div>`;

export const Failure = ({ error, retry }) => html`
  <div class="failure" role="alert"><p><strong>${error.status === 403 ? s.denied : s.failed}.</strong> ${error.message}</p>
    ${retry && error.status !== 403 && html`<${Button} small onClick=${retry}>${s.retry}<//>`}</div>`;

/** What a call gives: its loading, error and empty states, or the content made of its data. */
export function Result({ of, children, empty, lines }) {
  if (of.error && !of.data) return html`<${Failure} error=${of.error} retry=${of.reload} />`;
  if (!of.data) return of.loading ? html`<${Loading} lines=${lines} />` : null;
  if (empty && empty[0](of.data)) return empty[1];
  return html`<div class=${of.loading ? "stale" : ""} aria-busy=${of.loading}>${children(of.data)}</div>`;
}

export function Field({ label, children, hint, wide }) {
  return html`<label class="field ${wide ? "wide" : ""}"><span>${label}</span>${children}${hint && html`<small class="quiet">${hint}</small>`}</label>`;
}

/** A text field that tells its value when it settles; suggestions are optional. */
export function Input({ value = "", onValue, suggestions, type = "text", ...rest }) {
  const list = useName("list");
  const [text, setText] = useDraft(value);
  const timer = useRef(null);
  const typed = (event) => {
    const now = event.target.value;
    setText(now);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onValue(now), 350);
  };
  const settle = (event) => {
    clearTimeout(timer.current);
    if (event.target.value !== value) onValue(event.target.value);
  };
  return html`<input type=${type} value=${text} onInput=${typed} onChange=${settle} list=${suggestions ? list : undefined} autocomplete="off" ...${rest} />
    ${suggestions && html`<datalist id=${list}>${suggestions.map((each) => html`<option key=${each} value=${each} />`)}</datalist>`}`;
}

/** A field that tells its value when it is left, and keeps what is typed until then. */
export function Entry({ value, onEntered, ...rest }) {
  const [text, setText] = useDraft(value);
  return html`<input value=${text} onInput=${(event) => setText(event.target.value)} onChange=${(event) => onEntered(event.target.value)} ...${rest} />`;
}

export const Select = ({ value = "", onValue, options, ...rest }) => html`
  <select value=${value} onChange=${(event) => onValue(event.target.value)} ...${rest}>
    ${options.map(([name, label]) => html`<option key=${name} value=${name} selected=${name === value}>${label}</option>`)}
  </select>`;

export const Check = ({ label, checked, onValue, ...rest }) => html`
  <label class="check"><input type="checkbox" checked=${checked} onChange=${(event) => onValue(event.target.checked)} ...${rest} /> <span>${label}</span></label>`;

/** Tabs with the keyboard of tabs: arrows move, Home and End jump. */
export function Tabs({ tabs, chosen, onChoose, label }) {
  const move = (event) => {
    const at = tabs.findIndex(([name]) => name === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const [name] = tabs[(to + tabs.length) % tabs.length];
    onChoose(name);
    event.currentTarget.querySelector(`[data-tab="${name}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(([name, text, n]) => html`<button type="button" key=${name} role="tab" data-tab=${name} aria-selected=${name === chosen} tabindex=${name === chosen ? 0 : -1}
      onClick=${() => onChoose(name)}>${text}${n !== undefined && html` <span class="count">${n}</span>`}</button>`)}
  </div>`;
}

/** A modal dialog; Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, onClose, children, actions }) {
  const ref = useRef(null);
  const name = useName("dialog");
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby=${name} onCancel=${(event) => (event.preventDefault(), onClose())}>
    <h2 id=${name}>${title}</h2>${children}<div class="actions">${actions}<${Button} onClick=${onClose}>${s.cancel}<//></div></dialog>`;
}

/** Call the function with the letter of each key that is pressed outside of fields and dialogs. */
export function useKeys(onLetter) {
  useEffect(() => {
    const typed = (event) => {
      if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      onLetter(event.key.toLowerCase());
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  });
}

/** Say something for a few seconds, with a way to undo it. */
export function toast(text, undo, tone = "") {
  const made = { text, undo, tone, id: ++serial };
  if (undo) undoable.push(made);
  for (const listener of toastListeners) listener(made);
}

/** Undo something, by default the newest that was not undone. */
export async function undoOne(each = undoable[undoable.length - 1]) {
  if (!undoable.includes(each)) return;
  undoable.splice(undoable.indexOf(each), 1);
  for (const listener of toastListeners) listener({ ...each, isOver: true });
  await attempt(each.undo, s.undone);
}

/** What was done so far stays as it is. */
export const keepAll = () => undoable.splice(0);

export function Toasts() {
  const [shown, setShown] = useState([]);
  const drop = (id) => setShown((all) => all.filter((each) => each.id !== id));
  useEffect(() => {
    const tell = (each) => {
      if (each.isOver) return drop(each.id);
      setShown((all) => [...all.slice(-2), each]);
      return setTimeout(() => drop(each.id), each.undo ? 12000 : 5000);
    };
    toastListeners.add(tell);
    return () => toastListeners.delete(tell);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map((each) => html`<div key=${each.id} class="toast ${each.tone}"><span>${each.text}</span>
      ${each.undo && html`<${Button} small onClick=${() => undoOne(each)}>${s.undo}<//>`}
      <${Button} small aria-label=${s.close} onClick=${() => drop(each.id)}>×<//></div>`)}
  </div>`;
}

/** Do something and say that it is done, or why it is not. Returns the result, or undefined. */
export async function attempt(work, said, undo) {
  try {
    const result = await work();
    if (said) toast(typeof said === "function" ? said(result) : said, undo && (() => undo(result)));
    return result ?? true;
  } catch (error) {
    toast(error.message, null, "bad");
    return undefined;
  }
}

export function CopyButton({ text, label = s.copy }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} small onClick=${copy}>${done ? s.copied : label}<//>`;
}

/** A share as a bar, with its interval as a band. */
export function Confidence({ value, low, high }) {
  if (value === undefined || value === null) return null;
  const said = low === undefined ? percent(value) : `${percent(value)}, ${s.memory.interval(percent(low), percent(high))}`;
  return html`<span class="confidence" title=${said}><span class="confidence-bar" aria-hidden="true">
      ${low !== undefined && html`<span class="band" style=${{ left: `${low * 100}%`, width: `${(high - low) * 100}%` }}></span>`}
      <span class="fill" style=${{ width: `${value * 100}%` }}></span></span><span>${percent(value)}</span></span>`;
}

/** An effect on the success rate as a mark on a scale around zero, with its interval as a band. */
export function Effect({ effect, low, high, reach }) {
  const at = (value) => `${50 + (50 * Math.max(-reach, Math.min(reach, value))) / reach}%`;
  const said = `${points(effect)}, ${s.memory.interval(points(low), points(high))}`;
  return html`<span class="confidence" title=${said}><span class="effect-bar" role="img" aria-label=${said}>
      <span class="band ${low > 0 ? "good" : high < 0 ? "bad" : ""}" style=${{ left: at(low), width: `calc(${at(high)} - ${at(low)})` }}></span>
      <span class="zero"></span><span class="mark" style=${{ left: at(effect) }}></span></span><span>${points(effect)}</span></span>`;
}

/** The terms of a score as one bar: what adds to it, and what takes from it. */
export function ScoreBar({ terms, longest }) {
  const parts = Object.entries(terms).filter(([, value]) => Math.abs(value) >= 0.0005);
  const said = parts.map(([name, value]) => `${name} ${value.toFixed(3)}`).join(", ");
  return html`<div class="score"><div class="score-bar" role="img" aria-label=${said}>
      ${parts.map(([name, value], i) => html`<span key=${name} class="term ${value < 0 ? "minus" : `t${i % 6}`}" title=${`${name} ${value.toFixed(3)}`}
        style=${{ width: `${(Math.abs(value) / longest) * 100}%` }}></span>`)}</div>
    <ul class="terms">${parts.map(([name, value], i) => html`<li key=${name}><span class="dot ${value < 0 ? "minus" : `t${i % 6}`}"></span>${name} <b>${value.toFixed(3)}</b></li>`)}</ul></div>`;
}

/** One memory in a list, as a link to its page. */
export function Item({ row, href, children, aside }) {
  const text = row.text || row.title || row.id;
  return html`<article class="item"><div class="item-body">
      <div class="item-meta"><${KindBadge} kind=${row.kind} />${row.success !== undefined && html`<${Badge} tone=${row.success ? "good" : "bad"}>${row.success ? s.events.succeeded : s.events.failed}<//>`}
        ${row.agent && html`<span>${row.agent}</span>`}${row.type && html`<span>${row.type}</span>`}${row.pinned && html`<${Badge} tone="accent">${s.work.pinned}<//>`}
        ${row.state && row.state !== "active" && html`<${Badge} tone="warn">${s.states[row.state] || row.state}<//>`}<${Time} at=${row.created_at || row.at} /></div>
      ${row.title && row.title !== text && row.title !== row.type && html`<p class="item-title"><${Text}>${row.title}<//></p>`}
      <p class="item-text">${href ? html`<a href=${href}><${Text}>${text}<//></a>` : html`<${Text}>${text}<//>`}</p>${children}</div>
    ${aside && html`<div class="item-aside">${aside}</div>`}</article>`;
}

export const Page = ({ title, lead, aside, children }) => html`
  <div class="page"><header class="page-head"><div><h1 tabindex="-1">${title}</h1>${lead && html`<p class="quiet">${lead}</p>`}</div><div class="page-aside">${aside}</div></header>${children}</div>`;

/** The local value of a datetime field, and back. */
export const toLocal = (moment) => {
  if (!moment) return "";
  const at = new Date(moment);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
};
export const fromLocal = (text) => (text ? new Date(text).toISOString() : "");

const DAY = 86400000;
const STEPS = 200;

/** The slider of the moment that every view shows, over the days of a range; its right end is now. */
export function Slider({ label, isShown, range, asOf, change }) {
  const now = Date.now();
  const days = Math.max(range, asOf ? Math.ceil((now - new Date(asOf)) / DAY) : 0);
  const start = now - days * DAY;
  const placeOf = (moment) => (moment ? Math.max(0, Math.min(STEPS, Math.round(((new Date(moment) - start) / (days * DAY)) * STEPS))) : STEPS);
  const [at, setAt] = useState(placeOf(asOf));
  useEffect(() => setAt(placeOf(asOf)), [asOf, days]);
  const momentOf = (place) => new Date(start + (place / STEPS) * days * DAY).toISOString();
  const settle = (event) => change({ t: Number(event.target.value) === STEPS ? "" : momentOf(Number(event.target.value)) });
  const said = at === STEPS ? s.timeNow : when(asOf && at === placeOf(asOf) ? asOf : momentOf(at));
  const slider = html`<input type="range" name="as_of" aria-label=${label} min="0" max=${STEPS} value=${at} onInput=${(event) => setAt(Number(event.target.value))} onChange=${settle} aria-valuetext=${said} />`;
  return isShown ? html`<div class="stack tight"><span class="spread"><b>${label}</b><span class="quiet">${said}</span></span>${slider}</div>` : html`<span class="row slider">${slider}<span class="small">${said}</span></span>`;
}

export const Range = ({ value, onValue }) => html`
  <${Select} aria-label=${s.range} value=${String(value)} onValue=${onValue} options=${Object.entries(s.ranges).sort((a, b) => a[0] - b[0])} />`;
