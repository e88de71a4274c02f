// Runs in a folder in which the packed client is installed, against a real service at ADDRESS.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import test from "node:test";
import * as alma from "alma-agent-memory";

const { AlmaClient } = alma;
const address = process.env.ADDRESS;
const client = new AlmaClient({ address });

test("every operation of the service is a method", async () => {
  const document = await (await fetch(`${address}/openapi.json`)).json();
  const paths = Object.keys(document.paths).filter((path) => path.startsWith("/v1/operations/"));
  assert.deepEqual(Object.keys(alma.WRITES).sort(), paths.map((path) => path.slice("/v1/operations/".length)).sort());
  for (const name of Object.keys(alma.WRITES)) {
    const method = name.replace(/_./g, (pair) => pair[1].toUpperCase());
    assert.equal(typeof client[method], "function", method);
  }
});

test("a lesson is learned and handed over", async () => {
  for (let n = 0; n < 3; n++) {
    await client.learn({ agent: "nora", task: "Pack the crates", outcome: "success", strategy_used: "heavy ones first" });
  }
  assert.match((await client.retrieve({ task: "Pack the crates", agent: "nora" })).prompt, /heavy ones first/);
  assert.equal((await client.recommend({ task: "Pack the crates", agent: "nora" })).strategy, "heavy ones first");
  assert.equal((await client.health()).status, "ok");
});

test("errors are typed and name the field", async () => {
  await assert.rejects(client.getMemory({ memory_id: "nothing" }), (error) => {
    assert.ok(error instanceof alma.NotFoundError && error instanceof alma.AlmaError);
    assert.deepEqual([error.status, error.code, error.details.id], [404, "memory_not_found", "nothing"]);
    assert.match(error.requestId, /\w+/);
    return true;
  });
  await assert.rejects(client.retrieve({ task: "x", agent: "nora", top_k: 0 }), (error) => {
    assert.ok(error instanceof alma.ValidationError);
    assert.equal(error.details.field, "top_k");
    return true;
  });
  const { memory } = await client.createMemory({ content: "tea" });
  const stale = client.updateMemory({ memory_id: memory.id, title: "x", expected_version: 9 });
  await assert.rejects(stale, alma.ConflictError);
  const stranger = new AlmaClient({ address, key: "alma_wrong" });
  await assert.rejects(stranger.stats(), alma.PermissionDeniedError);
});

test("a service that is not there is one sentence with its address", async (t) => {
  const nowhere = new AlmaClient({ address: "http://127.0.0.1:9", attempts: 2, backoffMs: 1 });
  await assert.rejects(nowhere.stats(), (error) => {
    assert.ok(error instanceof alma.UnreachableError);
    assert.match(error.message, /the service at http:\/\/127\.0\.0\.1:9 did not answer: .+/);
    return true;
  });
  assert.throws(() => new AlmaClient({ address: "localhost:8080" }), /address must be a URL such as http/);
  const page = await proxied(t, (_, response) => response.writeHead(404).end("<html>"));
  await assert.rejects(new AlmaClient({ address: page.address }).stats(), /is this the address of an ALMA service/);
});

test("a write whose answer is lost is repeated and executed once", async (t) => {
  let lost = 0;
  const proxy = await proxied(t, (incoming, response, forward) => {
    forward((answer) => (lost++ < 2 ? response.destroy() : answer()));
  });
  const shaky = new AlmaClient({ address: proxy.address, backoffMs: 1 });
  const { memory } = await shaky.createMemory({ content: "written once", tags: ["once"] });
  assert.equal(lost, 3);
  const page = await client.listMemories({ where: { tags: ["once"] } });
  assert.deepEqual(page.memories.map((each) => each.id), [memory.id]);
});

test("a busy service is asked again when it says, and not more often than allowed", async (t) => {
  let asked = 0;
  const busy = await proxied(t, (incoming, response, forward) => {
    if (asked++ < 2) response.writeHead(503, { "Retry-After": "0" }).end("{}");
    else forward((answer) => answer());
  });
  assert.ok(await new AlmaClient({ address: busy.address }).stats());
  assert.equal(asked, 3);
  const never = await proxied(t, (incoming, response) => response.writeHead(429, { "Retry-After": "0" }).end("{}") && asked++);
  asked = 0;
  await assert.rejects(new AlmaClient({ address: never.address, attempts: 3 }).stats(), alma.AlmaError);
  assert.equal(asked, 3);
});

test("a call can be cancelled and times out", async (t) => {
  const silent = await proxied(t, () => undefined);
  const patient = new AlmaClient({ address: silent.address });
  const cancelled = patient.stats({}, { signal: AbortSignal.timeout(20) });
  await assert.rejects(cancelled, { name: "TimeoutError" });
  const hasty = new AlmaClient({ address: silent.address, timeoutMs: 20, attempts: 2, backoffMs: 1 });
  await assert.rejects(hasty.stats(), alma.UnreachableError);
});

test("changes arrive as events, also after the connection broke", async (t) => {
  let connections = 0;
  const proxy = await proxied(t, (incoming, response, forward) => {
    connections++;
    forward((answer) => answer());
    // The first connection breaks after a while.
    if (connections === 1) setTimeout(() => response.destroy(), 300);
  });
  const stop = new AbortController();
  const seen = [];
  const events = [];
  const listening = (async () => {
    for await (const event of new AlmaClient({ address: proxy.address, backoffMs: 5 }).events({ signal: stop.signal })) {
      seen.push(event.memory_id);
      events.push(event.id);
    }
  })();
  const wanted = new Set();
  while (connections < 2 || ![...wanted].every((id) => seen.includes(id)) || wanted.size < 3) {
    if (wanted.size < 3 || connections < 2) wanted.add((await client.createMemory({ content: `event ${wanted.size}` })).memory.id);
    // What was written before the first connection stood is not announced.
    if (!seen.length) wanted.clear();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  stop.abort();
  await listening;
  assert.equal(events.length, new Set(events).size, JSON.stringify({ events, seen }));
});

// A server that passes a request on to the service when told, or misbehaves.
async function proxied(t, handle) {
  const server = createServer((incoming, response) => {
    const chunks = [];
    incoming.on("data", (chunk) => chunks.push(chunk));
    incoming.on("end", () => {
      handle(incoming, response, (then) => {
        const options = { method: incoming.method, headers: { ...incoming.headers, host: new URL(address).host } };
        const outgoing = request(address + incoming.url, options, (answer) => {
          const stream = answer.headers["content-type"]?.startsWith("text/event-stream");
          const pass = () => {
            response.writeHead(answer.statusCode, answer.headers);
            answer.pipe(response);
          };
          if (stream) return pass();
          const body = [];
          answer.on("data", (chunk) => body.push(chunk));
          answer.on("end", () => then(() => response.writeHead(answer.statusCode, answer.headers).end(Buffer.concat(body))));
        });
        response.on("close", () => outgoing.destroy());
        outgoing.on("error", () => undefined);
        outgoing.end(Buffer.concat(chunks));
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { address: `http://127.0.0.1:${server.address().port}` };
}
