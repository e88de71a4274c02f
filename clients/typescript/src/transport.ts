import { AlmaError, UnreachableError, errorOf } from "./errors.js";

const TRANSIENT = new Set([429, 502, 503, 504]);
const LONGEST_WAIT_MS = 60_000;

export interface TransportOptions {
  address: string;
  key?: string | undefined;
  timeoutMs: number;
  attempts: number;
  backoffMs: number;
  fetch: typeof globalThis.fetch;
}

export interface Sent {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Sends requests, and repeats those that fail for a reason that passes. */
export class Transport {
  constructor(private readonly options: TransportOptions) {}

  /** The JSON of a successful response. */
  async json(sent: Sent): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.open(sent, AbortSignal.timeout(this.options.timeoutMs));
        return await response.json().catch((cause: unknown) => {
          throw this.unreachable(cause);
        });
      } catch (error) {
        sent.signal?.throwIfAborted();
        if (attempt >= this.options.attempts || !isTransient(error)) throw error;
        await sleep(this.pauseMs(error, attempt), sent.signal);
      }
    }
  }

  /** A successful response, whose body the caller reads. */
  async open(sent: Sent, deadline?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...sent.headers };
    if (this.options.key !== undefined) headers["Authorization"] = `Bearer ${this.options.key}`;
    const init: RequestInit = { method: sent.method, headers };
    if (sent.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(sent.body);
    }
    const signals = [sent.signal, deadline].filter((signal) => signal !== undefined);
    if (signals.length) init.signal = AbortSignal.any(signals);
    const send = this.options.fetch;
    const response = await send(this.options.address + sent.path, init).catch((cause: unknown) => {
      sent.signal?.throwIfAborted();
      throw this.unreachable(cause);
    });
    if (response.ok) return response;
    const error = await errorOf(response);
    throw Object.assign(error, { retryAfterMs: retryAfterMs(response) });
  }

  /** How long to wait before the next attempt: what the service says, else exponential back-off with jitter. */
  pauseMs(error: unknown, attempt: number): number {
    const said = (error as { retryAfterMs?: number }).retryAfterMs;
    const backoff = this.options.backoffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
    return Math.min(said ?? backoff, LONGEST_WAIT_MS);
  }

  unreachable(cause: unknown): UnreachableError {
    const reason = cause instanceof Error ? rootMessage(cause) : String(cause);
    const message = `the service at ${this.options.address} did not answer: ${reason}`;
    return new UnreachableError(message, { code: "unreachable", status: 0, cause });
  }
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  return error instanceof AlmaError && (TRANSIENT.has(error.status) || "retryAfterMs" in error && error.retryAfterMs !== undefined);
}

/** Wait, unless the signal aborts first. */
export async function sleep(milliseconds: number, signal?: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done);
  });
  signal?.throwIfAborted();
}

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}

function rootMessage(error: Error): string {
  return error.cause instanceof Error ? rootMessage(error.cause) : error.message || error.name;
}
