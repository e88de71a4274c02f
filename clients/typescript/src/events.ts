import type { Transport } from "./transport.js";
import { isTransient, sleep } from "./transport.js";

/** A change of a memory by any process; it names the memory and does not contain its text. */
export interface MemoryEvent {
  /** Pass it as `since` to continue after this event. */
  id: string;
  event_type: string;
  agent?: string;
  project_id?: string;
  memory_type?: string;
  memory_id?: string;
  timestamp: string;
  payload?: Record<string, unknown>;
  [name: string]: unknown;
}

export interface EventOptions {
  project_id?: string;
  /** The id of the last event received; the stream continues after it. */
  since?: string;
  signal?: AbortSignal;
}

/** Changes from now on, or since an event; a broken connection is opened again where it broke. */
export async function* eventsOf(transport: Transport, options: EventOptions, attempts: number): AsyncGenerator<MemoryEvent> {
  const query = options.project_id === undefined ? "" : `?project_id=${encodeURIComponent(options.project_id)}`;
  let since = options.since;
  let failures = 0;
  while (!options.signal?.aborted) {
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (since !== undefined) headers["Last-Event-ID"] = since;
      const response = await transport.open({ method: "GET", path: `/v1/events${query}`, headers, signal: options.signal });
      for await (const block of blocksOf(response.body!)) {
        failures = 0;
        since = block.id ?? since;
        if (block.data) yield { ...JSON.parse(block.data), id: since } as MemoryEvent;
      }
    } catch (cause) {
      if (options.signal?.aborted) return;
      const error = isStreamError(cause) ? transport.unreachable(cause) : cause;
      if (!isTransient(error) || ++failures >= attempts) throw error;
      await sleep(transport.pauseMs(error, failures), options.signal).catch(() => undefined);
    }
  }
}

interface Block {
  id?: string;
  data: string;
}

async function* blocksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Block> {
  let block: Block = { data: "" };
  for await (const line of linesOf(body)) {
    if (line === "") {
      yield block;
      block = { data: "" };
    } else if (line.startsWith("id: ")) {
      block.id = line.slice(4);
    } else if (line.startsWith("data: ")) {
      block.data += line.slice(6);
    }
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Errors of a body that breaks off are TypeErrors of fetch. */
function isStreamError(cause: unknown): boolean {
  return cause instanceof TypeError || (cause instanceof DOMException && cause.name !== "AbortError");
}
