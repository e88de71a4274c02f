// The service: every call is one of its public operations.
import { s } from "./strings.js";

const KEY = "alma.key";
const listeners = new Set();
let online = true;

/** An answer that is an error: its status, its code and its sentence. */
export class ServiceError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) || localStorage.getItem(KEY),
  set(value, keep) {
    sessionStorage.setItem(KEY, value);
    if (keep) localStorage.setItem(KEY, value);
  },
  clear() {
    sessionStorage.removeItem(KEY);
    localStorage.removeItem(KEY);
  },
};

/** Call the function with true or false whenever the service becomes reachable or unreachable. */
export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function connection(now) {
  if (now === online) return;
  online = now;
  for (const listener of listeners) listener(now);
  if (!now) retry();
}

async function retry() {
  while (!online) {
    await new Promise((done) => setTimeout(done, 1000));
    try {
      const answer = await fetch("/health", { cache: "no-store" });
      if (answer.ok) connection(true);
    } catch {
      // Still away.
    }
  }
}

function headers(more) {
  const known = key.get();
  return known ? { ...more, Authorization: `Bearer ${known}` } : { ...more };
}

/** Send a request; a service that does not answer is a ServiceError with the code "offline". */
async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connection(false);
    throw new ServiceError(0, "offline", s.offline);
  }
  connection(true);
  return answer;
}

/** Perform an operation and return its result; arguments without a value are left out. */
export async function call(operation, given = {}, { signal } = {}) {
  const body = JSON.stringify(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null && value !== "")));
  const answer = await request(`/v1/operations/${operation}`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json" }),
    body,
    signal,
  });
  if (answer.ok) return answer.json();
  const result = await answer.json().catch(() => ({}));
  if (answer.status === 401 && operation !== "whoami") dispatchEvent(new Event("alma:signed-out"));
  const { code = "internal_error", message = s.unexpected(answer.status) } = result.error || {};
  throw new ServiceError(answer.status, code, message);
}

/** Read server-sent events until the signal aborts; the stream is opened again when it ends. */
export async function follow(projectId, onEvent, signal) {
  let last = null;
  while (!signal.aborted) {
    try {
      const query = projectId ? `?project_id=${encodeURIComponent(projectId)}` : "";
      const answer = await request(`/v1/events${query}`, {
        headers: headers(last ? { "Last-Event-ID": last } : {}),
        signal,
      });
      if (!answer.ok) throw new ServiceError(answer.status, "stream", "");
      for await (const event of events(answer.body)) {
        last = event.id || last;
        if (event.data) onEvent(JSON.parse(event.data));
      }
    } catch (error) {
      if (error.status === 401) dispatchEvent(new Event("alma:signed-out"));
      if (signal.aborted || (error.status >= 400 && error.status < 500)) return;
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const event = {};
      for (const line of part.split("\n")) {
        const colon = line.indexOf(":");
        if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
      }
      yield event;
    }
  }
}
