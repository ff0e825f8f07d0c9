// Talks to a coldkv server as an application would, and prints what it saw as JSON.
import OpenAI from "openai";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const entry = require.resolve("openai");
const manifest = JSON.parse(
  readFileSync(entry.slice(0, entry.lastIndexOf("/openai/")) + "/openai/package.json", "utf8"),
);
const client = new OpenAI({
  baseURL: process.env.COLDKV_URL,
  apiKey: "none",
  maxRetries: 0,
  timeout: 900 * 1000,
});
const messages = [
  { role: "system", content: "You answer briefly." },
  { role: "user", content: process.env.COLDKV_DOCUMENT + " Which record is the last one?" },
];
const ask = { model: "local", messages, max_tokens: 24, temperature: 0 };

const models = await client.models.list();
const reply = await client.chat.completions.create(ask);

// The entry is stored after the reply; the next request waits for its turn behind that.
let streamed = "";
let second;
const stream = await client.chat.completions.create({
  ...ask,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  if (chunk.usage) second = chunk.usage;
}

let refused;
try {
  const tool = { type: "function", function: { name: "f", parameters: {} } };
  await client.chat.completions.create({ ...ask, tools: [tool] });
} catch (error) {
  refused = error;
}

const cut = await client.chat.completions.create({ ...ask, max_tokens: 500, stream: true });
let aborted = false;
for await (const chunk of cut) {
  if (chunk.choices[0]?.delta?.content) {
    cut.controller.abort();
    aborted = true;
    break;
  }
}
const after = await client.chat.completions.create({ ...ask, max_tokens: 2 });

console.log(
  JSON.stringify({
    version: manifest.version,
    models: models.data.length,
    text: reply.choices[0].message.content,
    finish: reply.choices[0].finish_reason,
    usage: reply.usage,
    streamed,
    second_cached: second?.prompt_tokens_details?.cached_tokens,
    refused_status: refused?.status,
    refused_message: refused?.message,
    aborted,
    after_abort: after.choices[0].message.content.length > 0,
  }),
);
