// The review inbox: what needs a decision, with keys and undo.
import { html, useEffect, useRef, useState } from "../html.js";
import { existed, memoryHref, reloadAll, useCall } from "../state.js";
import { s } from "../strings.js";
import { Diff } from "../diff.js";
import { Badge, Button, Card, Dialog, Empty, Field, Item, keepAll, Page, Result, Tabs, Text, undoOne, useKeys } from "../ui.js";
import { accept, correct, demote, keepBoth, merge, reinstate, reject } from "../actions.js";

const AT_ONCE = 50;
const CATEGORIES = ["quarantined", "contradiction", "duplicate", "doubtful", "harmful"];

export default function Review({ projectId, asOf, address, can }) {
  const { params, change } = address;
  const found = useCall("review_inbox", { project_id: projectId, categories: params.category ? [params.category] : CATEGORIES, limit: AT_ONCE });
  const itemsOf = (data) => data.items.filter((item) => existed(item.row.created_at, asOf));
  const tabs = [["", s.all], ...CATEGORIES.map((name) => [name, s.review.categories[name]])];
  useEffect(() => void keepAll(), []);
  useKeys((letter) => letter === "u" && undoOne());
  return html`<${Page} title=${s.views.review} lead=${s.review.lead}>
    <${Tabs} label=${s.views.review} chosen=${params.category || ""} onChoose=${(category) => change({ category })} tabs=${tabs} />
    <${Card} aside=${found.data && html`${s.review.left(itemsOf(found.data).length, found.data.items.length === AT_ONCE)}`}><${Result} of=${found} empty=${[(data) => !itemsOf(data).length, html`<${Empty} title=${s.review.nothing}>${s.review.nothingWhy}<//>`]} lines=${8}>${(data) => html`<${Items} items=${itemsOf(data)} data=${data} projectId=${projectId} can=${can} />`}<//><//>
    ${can("reject_records") && html`<p class="small quiet">${s.review.keys}</p>`}<//>`;
}

const keyOf = (item) => `${item.category} ${item.archive_id || item.row.id} ${item.other?.id || ""}`;

/** The decisions on an item: the letter of each, its name, and what it does; editing opens a dialog instead. */
function decisionsOf(item, projectId, can) {
  const { row, other, category } = item;
  const given = { project_id: projectId, kind: row.kind, ids: [row.id], user_id: row.kind === "user_preference" ? row.user_id : undefined };
  const all = [];
  const add = (letter, name, right, work, tone) => right && all.push({ letter, name, work, tone });
  if (category === "quarantined") {
    add("a", s.review.accept, can("restore"), () => accept({ project_id: projectId, kind: row.kind, archiveId: item.archive_id, id: row.id }));
    add("r", s.review.reject, can("reject_records"), () => reject({ ...given, ids: [], archive_ids: [item.archive_id] }), "danger");
    return all;
  }
  if (category === "doubtful") {
    const fields = { project_id: projectId, kind: row.kind, id: row.id, user_id: given.user_id };
    add("a", s.review.accept, can("correct_record"), () => correct({ ...fields, confidence: 1, reason: s.review.accept }, { confidence: row.confidence }, s.review.accepted));
  }
  if (category === "harmful") {
    const lesson = { project_id: projectId, kind: row.kind, ids: [row.id] };
    if (item.is_demoted) add("a", s.lessons.reinstate, can("reinstate_memories"), () => reinstate(lesson));
    else add("d", s.lessons.demote, can("demote_harmful"), () => demote(lesson));
  }
  if (other) {
    add("a", s.review.keepBoth, can("distinguish_memories"), () => keepBoth({ project_id: projectId, memory_id: row.id, other_id: other.id, user_id: given.user_id }));
    add("m", s.review.merge, can("merge_records") && row.kind !== "outcome", () => merge({ project_id: projectId, kind: row.kind, keep_id: row.id, merge_ids: [other.id], user_id: given.user_id }));
  }
  add("e", s.review.edit, can("correct_record"));
  add("r", s.review.reject, can("reject_records"), () => reject(given), "danger");
  return all;
}

function Items({ items, data, projectId, can }) {
  const [at, setAt] = useState(0);
  const [editing, setEditing] = useState(null);
  const [, setTurn] = useState(0);
  const decided = useRef(new Set());
  const waiting = useRef(0);
  const list = useRef(null);
  const leftNow = () => items.filter((item) => !decided.current.has(keyOf(item)));
  const left = leftNow();
  const now = Math.min(at, left.length - 1);
  const mark = (change) => (change(decided.current), setTurn((n) => n + 1));
  useEffect(() => {
    if (!waiting.current) mark((all) => all.clear());
  }, [data]);
  // What is decided leaves the list at once, so that the next key means the next item, even before it is drawn.
  const decide = async (item, { work }) => {
    if (!work) return setEditing(item);
    mark((all) => all.add(keyOf(item)));
    waiting.current++;
    const isDone = await work();
    waiting.current--;
    return isDone ? reloadAll() : mark((all) => all.delete(keyOf(item)));
  };
  useKeys((letter) => {
    const some = leftNow();
    const item = some[Math.min(at, some.length - 1)];
    if (letter === "j" || letter === "k") {
      const to = Math.max(0, Math.min(some.length - 1, now + (letter === "j" ? 1 : -1)));
      setAt(to);
      list.current?.children[to]?.scrollIntoView({ block: "nearest" });
    }
    const decision = item && decisionsOf(item, projectId, can).find((each) => each.letter === letter);
    if (decision) decide(item, decision);
  });
  return html`<div class="list" ref=${list}>${left.map((item, i) => html`<div key=${keyOf(item)} class="review-item" data-at=${i === now} onClick=${() => setAt(i)}>
      <${Item} row=${{ ...item.row, state: "active" }} href=${item.archive_id ? undefined : memoryHref(item.row)} aside=${html`<${Badge} tone="warn">${s.review.categories[item.category]}<//>`}>
        ${item.reason && html`<p class="small quiet"><${Text}>${item.reason}<//></p>`}
        ${item.other && html`<div class=${item.category === "duplicate" ? "pair" : "pair one"}><div><span class="small quiet">${s.review.other}, ${item.other.agent || item.other.user_id || ""}</span><a href=${memoryHref(item.other)}><${Text}>${item.other.text}<//></a></div>${item.category === "duplicate" && html`<div class="small"><${Diff} before=${item.other.text} after=${item.row.text} /></div>`}</div>`}
        <div class="row">${decisionsOf(item, projectId, can).map((each) => html`<${Button} key=${each.letter + each.name} small kind=${each.tone || "plain"} onClick=${() => decide(item, each)}>${each.name} <kbd>${each.letter.toUpperCase()}</kbd><//>`)}</div><//></div>`)}</div>
    ${editing && html`<${Edit} item=${editing} projectId=${projectId} close=${() => setEditing(null)} />`}`;
}

function Edit({ item, projectId, close }) {
  const { row } = item;
  const [text, setText] = useState(row.text);
  const submit = async (event) => {
    event.preventDefault();
    const given = { project_id: projectId, kind: row.kind, id: row.id, text, confidence: item.category === "doubtful" ? 1 : undefined, user_id: row.kind === "user_preference" ? row.user_id : undefined, reason: s.review.edit };
    if (await correct(given, { text: row.text, confidence: item.category === "doubtful" ? row.confidence : undefined }, s.review.edited)) close(), reloadAll();
  };
  return html`<${Dialog} title=${s.review.edit} onClose=${close} actions=${html`<button class="button primary" form="edit">${s.save}</button>`}><form id="edit" onSubmit=${submit}><${Field} label=${s.memory.text}><textarea name="text" dir="auto" required value=${text} onInput=${(event) => setText(event.target.value)}></textarea><//></form><//>`;
}
