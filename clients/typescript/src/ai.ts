/** Memory for the Vercel AI SDK: middleware that hands memories to a model, and tools that a model calls itself. */
import { jsonSchema, tool, type LanguageModelMiddleware, type ToolSet } from "ai";
import type { AlmaClient } from "./client.js";

export interface MemoryOptions {
  /** The agent whose lessons are used. */
  agent: string;
  /** Whose preferences apply. */
  userId?: string;
  projectId?: string;
}

export interface MiddlewareOptions extends MemoryOptions {
  /** The token budget of the memories in a prompt. Default: 1000. */
  maxTokens?: number;
  /** Learn facts and preferences from what the user says, after each answer. Default: false. */
  learn?: boolean;
  /** Called with the error if the memory fails; the model is called without memories. Default: a warning. */
  onError?: (error: unknown) => void;
}

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Message = Params["prompt"][number];

const REMEMBERED_TURNS = 1000;

/**
 * Middleware for `wrapLanguageModel` that puts the memories worth knowing before each message of the user.
 *
 * They are retrieved once for a message, when it is the last one, and stay before it in later steps and turns, so the
 * provider's prompt cache keeps working. A memory that fails does not fail the model.
 */
export function almaMemory(client: AlmaClient, options: MiddlewareOptions): LanguageModelMiddleware {
  const shown = new Map<string, string>();
  const report = options.onError ?? ((error: unknown) => console.warn("ALMA:", error));

  async function promptFor(task: string): Promise<string> {
    const found = await client.retrieve({
      task,
      agent: options.agent,
      user_id: options.userId,
      project_id: options.projectId,
      max_tokens: options.maxTokens ?? 1000,
    });
    return found.prompt;
  }

  function remember(turn: string, memories: string): void {
    if (shown.size >= REMEMBERED_TURNS) shown.delete(shown.keys().next().value as string);
    shown.delete(turn);
    shown.set(turn, memories);
  }

  function learnFrom(params: Params): void {
    const task = textOf(params.prompt[lastUserMessage(params.prompt)]);
    if (!options.learn || !task) return;
    const messages = [{ role: "user" as const, content: task }];
    const { agent, userId, projectId } = options;
    client
      .learnFromConversation({ messages, agent, user_id: userId, project_id: projectId })
      .catch(report);
  }

  return {
    specificationVersion: "v3",
    transformParams: async ({ params }) => {
      const place = lastUserMessage(params.prompt);
      const task = textOf(params.prompt[place]);
      const turns = turnsOf(params.prompt);
      const turn = turns[place];
      if (task && turn !== undefined && (place === params.prompt.length - 1 || !shown.has(turn))) {
        try {
          remember(turn, await promptFor(task));
        } catch (error) {
          report(error);
        }
      }
      const prompt = params.prompt.map((message, index) => withMemories(message, shown.get(turns[index] ?? "")));
      return { ...params, prompt };
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      if (result.finishReason.unified === "stop") learnFrom(withoutMemories(params));
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const result = await doStream();
      const finished = new TransformStream({
        transform(part: { type: string; finishReason?: { unified: string } }, controller) {
          if (part.type === "finish" && part.finishReason?.unified === "stop") learnFrom(withoutMemories(params));
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(finished as never) };
    },
  };
}

/** Tools with which a model retrieves, stores and learns itself. */
export function almaTools(client: AlmaClient, options: MemoryOptions): ToolSet {
  const { agent, userId: user_id, projectId: project_id } = options;
  return {
    recall: tool({
      description: "Get what is known about a task before doing it: strategies that worked, mistakes to avoid, preferences.",
      inputSchema: jsonSchema<{ task: string }>(object({ task: text("The task, in one or two sentences.") })),
      execute: async ({ task }) => {
        const found = await client.retrieve({ task, agent, user_id, project_id });
        return found.prompt || "Nothing is known about this.";
      },
    }),
    remember: tool({
      description: "Store a fact, decision or note that will be useful in later conversations.",
      inputSchema: jsonSchema<{ content: string }>(object({ content: text("What to remember, in full sentences.") })),
      execute: async ({ content }) => (await client.createMemory({ content, user_id, project_id })).memory.id,
    }),
    learn: tool({
      description: "Record the outcome of a task that you did, so that later tasks profit from it.",
      inputSchema: jsonSchema<{ task: string; outcome: string; strategy: string }>(
        object({
          task: text("The task, in one or two sentences."),
          outcome: { type: "string", enum: ["success", "failure"] },
          strategy: text("What you did that mattered, in one sentence."),
        }),
      ),
      execute: async ({ task, outcome, strategy }) => {
        await client.learn({ agent, task, outcome, strategy_used: strategy, project_id });
        return "Recorded.";
      },
    }),
  };
}

function text(description: string): object {
  return { type: "string", minLength: 1, description };
}

function object(properties: Record<string, object>): object {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function lastUserMessage(prompt: Params["prompt"]): number {
  return prompt.findLastIndex((message) => message.role === "user");
}

const MEMORIES = { alma: { memories: true } };

function isMemories(part: { providerOptions?: unknown }): boolean {
  return part.providerOptions === MEMORIES;
}

function textOf(message: Message | undefined): string {
  if (message?.role !== "user") return "";
  const texts = message.content.flatMap((part) => (part.type === "text" && !isMemories(part) ? [part.text] : []));
  return texts.join("\n").trim();
}

/** What tells the messages of the user apart: how much the user said before, and the text. */
function turnsOf(prompt: Params["prompt"]): string[] {
  let before = 0;
  return prompt.map((message) => {
    const said = textOf(message);
    const turn = `${before}:${said}`;
    before += said.length;
    return turn;
  });
}

function withMemories(message: Message, memories: string | undefined): Message {
  if (message.role !== "user" || !memories) return message;
  const block = { type: "text" as const, text: `${memories}\n\n`, providerOptions: MEMORIES };
  return { ...message, content: [block, ...message.content] };
}

function withoutMemories(params: Params): Params {
  const prompt = params.prompt.map((message) =>
    message.role === "user" ? { ...message, content: message.content.filter((part) => !isMemories(part)) } : message,
  );
  return { ...params, prompt };
}
