// The adapter of the Vercel AI SDK, with a scripted model, against a real service at ADDRESS.
import assert from "node:assert/strict";
import test from "node:test";
import { generateText, isStepCount, stepCountIs, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { AlmaClient } from "alma-agent-memory";
import { almaMemory, almaTools } from "alma-agent-memory/ai";

const client = new AlmaClient({ address: process.env.ADDRESS });
const stopAfter = isStepCount ?? stepCountIs;
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const said = (text) => ({
  content: [{ type: "text", text }],
  finishReason: { unified: "stop", raw: "stop" },
  usage,
  warnings: [],
});
const called = (toolName, input) => ({
  content: [{ type: "tool-call", toolCallId: "1", toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  usage,
  warnings: [],
});
const promptOf = (call) => call.prompt.flatMap((message) => (Array.isArray(message.content) ? message.content : []));

test("a model learns with a tool, and the next one is handed the lesson", async () => {
  const answers = [1, 2, 3].map(() =>
    called("learn", { task: "Water the ferns", outcome: "success", strategy: "in the evening, from below" }),
  );
  for (const answer of answers) {
    const model = new MockLanguageModelV3({ doGenerate: [answer, said("done")] });
    const tools = almaTools(client, { agent: "gardener" });
    await generateText({ model, tools, stopWhen: stopAfter(3), prompt: "Water the ferns" });
  }
  const model = new MockLanguageModelV3({ doGenerate: said("I will") });
  const wrapped = wrapLanguageModel({ model, middleware: almaMemory(client, { agent: "gardener" }) });
  const history = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi" },
  ];
  await generateText({ model: wrapped, messages: [...history, { role: "user", content: "Water the ferns" }] });
  const [call] = model.doGenerateCalls;
  const texts = promptOf(call).map((part) => part.text);
  assert.deepEqual(texts.slice(0, 2), ["Hello", "Hi"]);
  assert.match(texts[2], /in the evening, from below/);
  assert.equal(texts[3], "Water the ferns");
});

test("the steps of one turn get the same memories, asked for once", async () => {
  let retrieved = 0;
  const counting = new AlmaClient({
    address: process.env.ADDRESS,
    fetch: (input, init) => {
      retrieved += String(input).endsWith("/retrieve");
      return fetch(input, init);
    },
  });
  const model = new MockLanguageModelV3({ doGenerate: [called("remember", { content: "The ferns stand in the hall." }), said("ok")] });
  const middleware = almaMemory(counting, { agent: "gardener" });
  const wrapped = wrapLanguageModel({ model, middleware });
  const tools = almaTools(client, { agent: "gardener" });
  await generateText({ model: wrapped, tools, stopWhen: stopAfter(3), prompt: "Water the ferns" });
  assert.equal(retrieved, 1);
  assert.equal(model.doGenerateCalls.length, 2);
  const [first, second] = model.doGenerateCalls.map((call) => promptOf(call)[0].text);
  assert.equal(first, second);
});

test("memories stay before a message in later turns, and a new conversation gets new ones", async () => {
  const model = new MockLanguageModelV3({ doGenerate: async () => said("ok") });
  const wrapped = wrapLanguageModel({ model, middleware: almaMemory(client, { agent: "gardener" }) });
  const first = { role: "user", content: "Water the ferns" };
  const turn = [first, { role: "assistant", content: "I will" }, { role: "user", content: "And the roses?" }];
  await generateText({ model: wrapped, messages: [first] });
  await generateText({ model: wrapped, messages: turn });
  const lesson = { agent: "gardener", task: "Water the ferns", outcome: "success", strategy_used: "with rain water" };
  for (let n = 0; n < 3; n++) await client.learn(lesson);
  await generateText({ model: wrapped, messages: [first] });
  const [before, later, fresh] = model.doGenerateCalls.map((call) => JSON.stringify(call.prompt));
  assert.equal(later.startsWith(before.slice(0, -1)), true);
  assert.equal(before.includes("rain water"), false);
  assert.equal(fresh.includes("rain water"), true);
});

test("what a user says is learned after a streamed answer", async () => {
  const chunks = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Noted." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
  ];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
  const errors = [];
  const middleware = almaMemory(client, { agent: "gardener", userId: "mia", learn: true, onError: (error) => errors.push(error) });
  const result = streamText({ model: wrapLanguageModel({ model, middleware }), prompt: "I prefer short answers without emojis." });
  assert.equal(await result.text, "Noted.");
  let found = [];
  for (let n = 0; n < 100 && !found.length; n++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    found = (await client.listPreferences({ user_id: "mia" })).preferences;
  }
  assert.match(found[0].preference, /short answers/);
  assert.deepEqual(errors, []);
});

test("without a service the model answers without memories", async () => {
  const errors = [];
  const nowhere = new AlmaClient({ address: "http://127.0.0.1:9", attempts: 1 });
  const middleware = almaMemory(nowhere, { agent: "gardener", onError: (error) => errors.push(error.name) });
  const model = new MockLanguageModelV3({ doGenerate: said("fine") });
  const { text } = await generateText({ model: wrapLanguageModel({ model, middleware }), prompt: "Water the ferns" });
  assert.equal(text, "fine");
  assert.deepEqual(errors, ["UnreachableError"]);
});
