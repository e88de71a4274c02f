// The state of the page is its address: the view, and what is chosen in it.
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { call } from "./api.js";

function parsed() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: decodeURIComponent(path) || "overview", params: Object.fromEntries(new URLSearchParams(query)) };
}

/** These stay when another view is opened. */
const SHARED = ["project", "t"];

export function hrefOf(view, params = {}) {
  const { params: now } = parsed();
  const kept = Object.fromEntries(SHARED.filter((name) => now[name] && !(name in params)).map((name) => [name, now[name]]));
  const chosen = Object.entries({ ...kept, ...params }).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(chosen).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** The page of a memory; preferences belong to a user, and are found in the archive with its name. */
export const memoryHref = ({ kind, id, user_id }) => hrefOf("memory", { kind, id, user: kind === "user_preference" ? user_id : undefined });

export function go(view, params = {}) {
  location.hash = hrefOf(view, params);
}

/** The view and its parameters, and a function that changes some of them. */
export function useAddress() {
  const [address, setAddress] = useState(parsed);
  useEffect(() => {
    const changed = () => setAddress(parsed());
    addEventListener("hashchange", changed);
    // The address may have changed since the first rendering.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  const change = useCallback((params, { replace = false } = {}) => {
    const now = parsed();
    const href = hrefOf(now.view, { ...now.params, ...params });
    if (replace) history.replaceState(null, "", href);
    else location.hash = href;
    setAddress(parsed());
  }, []);
  return { ...address, change };
}

/**
 * The result of an operation: {data, error, loading, reload}. An operation of null is not performed; one that is not
 * live is not performed again for changes that come in.
 */
export function useCall(operation, given, { keep = true, live = true } = {}) {
  const [state, setState] = useState({ loading: Boolean(operation) });
  const [turn, setTurn] = useState(0);
  const text = JSON.stringify(given);
  const before = useRef(null);
  useEffect(() => {
    if (!operation) {
      setState({ loading: false });
      return undefined;
    }
    const abort = new AbortController();
    const same = before.current === operation;
    before.current = operation;
    setState((now) => ({ data: keep && same ? now.data : undefined, loading: true }));
    call(operation, JSON.parse(text), { signal: abort.signal })
      .then((data) => abort.signal.aborted || setState({ data, loading: false }))
      .catch((error) => error.name !== "AbortError" && setState((now) => ({ data: keep ? now.data : undefined, error, loading: false })));
    return () => abort.abort();
  }, [operation, text, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    const events = live ? ["alma:reload", "alma:live"] : ["alma:reload"];
    for (const name of events) addEventListener(name, reload);
    return () => events.forEach((name) => removeEventListener(name, reload));
  }, []);
  return { ...state, reload };
}

/** Whether something existed at the moment that is shown. */
export const existed = (created, asOf) => !asOf || !created || new Date(created) <= new Date(asOf);

/** Read everything on the page again. */
export function reloadAll() {
  dispatchEvent(new Event("alma:reload"));
}

/** Read again what changes that come in may concern. */
export function reloadLive() {
  dispatchEvent(new Event("alma:live"));
}

/** What is typed into a field, until the value that it began with changes; and a function that changes it. */
export function useDraft(value) {
  const [draft, setDraft] = useState({ text: value, of: value });
  return [draft.of === value ? draft.text : value, (text) => setDraft({ text, of: value })];
}

/** The value after it has not changed for some milliseconds. */
export function useSettled(value, milliseconds = 250) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
