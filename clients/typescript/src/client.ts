import type { EventOptions, MemoryEvent } from "./events.js";
import { eventsOf } from "./events.js";
import type { CallOptions, OperationMethods, Operations } from "./schema.js";
import { WRITES } from "./schema.js";
import { Transport } from "./transport.js";

/** Where the service is, and how patient the client is. */
export interface ClientOptions {
  /** The address of the service. Default: http://127.0.0.1:8080 */
  address?: string;
  /** An API key, made by `alma keys create`. */
  key?: string;
  /** How long one attempt may take. Default: 30 seconds. */
  timeoutMs?: number;
  /** How often a request is sent before its error is thrown. Default: 4. */
  attempts?: number;
  /** The first pause between attempts; it doubles. Default: 200. */
  backoffMs?: number;
  /** Another implementation of fetch. */
  fetch?: typeof globalThis.fetch;
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging
export interface AlmaClient extends OperationMethods {}

/**
 * A client of an ALMA service: every operation is a method.
 *
 * Network errors and a busy service are retried with back-off; an idempotency key makes sure that a write is executed
 * once. Errors are subclasses of `AlmaError`.
 */
export class AlmaClient {
  private readonly transport: Transport;
  private readonly attempts: number;

  constructor(options: ClientOptions = {}) {
    this.attempts = options.attempts ?? 4;
    this.transport = new Transport({
      address: checkedAddress(options.address ?? "http://127.0.0.1:8080"),
      key: options.key,
      timeoutMs: options.timeoutMs ?? 30_000,
      attempts: this.attempts,
      backoffMs: options.backoffMs ?? 200,
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    });
  }

  /** Call an operation by its name. */
  async call<Name extends keyof Operations>(
    name: Name,
    input?: Operations[Name]["input"],
    options: CallOptions = {},
  ): Promise<Operations[Name]["output"]> {
    const headers: Record<string, string> = {};
    if (WRITES[name]) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
    const path = `/v1/operations/${name}`;
    const found = await this.transport.json({ method: "POST", path, body: input ?? {}, headers, signal: options.signal });
    return found as Operations[Name]["output"];
  }

  /** Changes of memories by any process, from now on or since an event: `for await (const event of client.events())`. */
  events(options: EventOptions = {}): AsyncGenerator<MemoryEvent> {
    return eventsOf(this.transport, options, this.attempts);
  }
}

function checkedAddress(address: string): string {
  if (!URL.canParse(address) || !new URL(address).protocol.startsWith("http")) {
    throw new TypeError(`address must be a URL such as http://127.0.0.1:8080, not ${JSON.stringify(address)}`);
  }
  return address.replace(/\/+$/, "");
}

for (const name of Object.keys(WRITES) as Array<keyof Operations>) {
  const method = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  Object.defineProperty(AlmaClient.prototype, method, {
    value(this: AlmaClient, input?: never, options?: CallOptions) {
      return this.call(name, input, options);
    },
    writable: true,
    configurable: true,
  });
}
