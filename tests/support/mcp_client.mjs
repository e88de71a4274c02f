// A conversation of the official TypeScript client with a server: over HTTP at an address, or over stdio with a command.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [first, ...rest] = process.argv.slice(2);
const transport = first.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args: rest, env: process.env, stderr: "inherit" });
const client = new Client({ name: "typescript", version: "1" });
await client.connect(transport);

const progress = [];
const said = { server: client.getServerVersion(), capabilities: client.getServerCapabilities() };
said.tools = (await client.listTools()).tools.map((tool) => tool.name);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const learned = { agent: "victor", task: "Call the service", outcome: "success", strategy_used: "retry once" };
said.learned = (await call("alma_learn", learned)).structuredContent;
said.retrieved = (await call("alma_retrieve", { agent: "victor", task: "Call the service" })).content[0].text;
said.refused = await call("alma_retrieve", { agent: "victor" });
// This client forgets whom to tell of progress that arrives together with the answer, so it may take more than one call.
for (let calls = 0; calls < 10 && !progress.length; calls++) {
  await call("alma_forget", { dry_run: true }, { onprogress: (told) => progress.push(told.progress) });
}
said.progress = progress;
said.resources = (await client.listResources()).resources.map((resource) => resource.uri);
said.templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
said.config = JSON.parse((await client.readResource({ uri: "alma://config" })).contents[0].text);
said.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const asked = { name: "before_task", arguments: { agent: "victor", task: "Call the service" } };
said.prompt = (await client.getPrompt(asked)).messages[0].content.text;
await client.close();
console.log(JSON.stringify(said));
