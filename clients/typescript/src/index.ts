export { AlmaClient, type ClientOptions } from "./client.js";
export * from "./errors.js";
export type { MemoryEvent } from "./events.js";
export * from "./schema.js";
