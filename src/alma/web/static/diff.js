// What differs between two texts, word by word.
import { html } from "./html.js";

const words = (text) => String(text ?? "").split(/(\s+)/).filter((each) => each !== "");

/** Runs of words: [kind, text], where kind is same, out or in. Long texts are compared by line. */
export function differences(before, after) {
  let [one, other] = [words(before), words(after)];
  if (one.length * other.length > 400000) [one, other] = [String(before ?? "").split(/(?<=\n)/), String(after ?? "").split(/(?<=\n)/)];
  if (one.length * other.length > 400000) return [["out", String(before ?? "")], ["in", String(after ?? "")]];
  const width = other.length + 1;
  const longest = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      longest[i * width + j] = one[i] === other[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const runs = [];
  const add = (kind, text) => (runs.length && runs[runs.length - 1][0] === kind ? (runs[runs.length - 1][1] += text) : runs.push([kind, text]));
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) add("same", (j++, one[i++]));
    else if (j < other.length && (i === one.length || longest[i * width + j + 1] > longest[(i + 1) * width + j])) add("in", other[j++]);
    else add("out", one[i++]);
  }
  return runs;
}

const isNumber = (value) => typeof value === "number" || value === null || value === undefined;
const rounded = (value) => (typeof value === "number" ? String(Math.round(value * 1000) / 1000) : "");

const shown = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.map(shown).join(", ") : typeof value === "string" ? value : JSON.stringify(value));

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A change of an object as the changes of its keys. */
function parts({ field, before, after }) {
  if (!isObject(before ?? after) || !isObject(after ?? before)) return [{ field, before, after }];
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const differing = names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
  return differing.flatMap((name) => parts({ field: `${field} ${name}`, before: before?.[name], after: after?.[name] }));
}

export const Diff = ({ before, after }) => isNumber(before) && isNumber(after) ? html`<del>${rounded(before)}</del> → <ins>${rounded(after)}</ins>` : html`<span class="text">${differences(shown(before), shown(after)).map(([kind, text], i) =>
  kind === "same" ? html`<span key=${i}>${text}</span>` : kind === "in" ? html`<ins key=${i}>${text}</ins>` : html`<del key=${i}>${text}</del>`)}</span>`;

const HIDDEN = new Set(["updated_at", "last_validated", "last_seen", "last_verified", "outcomes_for", "outcomes_against"]);

/** The changed fields of a record, except for those that change with every write. */
export const Changes = ({ changes }) => {
  const told = changes.filter((each) => !HIDDEN.has(each.field));
  return html`<dl class="facts small">${(told.length ? told : changes).flatMap(parts).map((each) => html`<dt key=${each.field}>${each.field.replaceAll("_", " ")}</dt><dd><${Diff} before=${each.before} after=${each.after} /></dd>`)}</dl>`;
};
