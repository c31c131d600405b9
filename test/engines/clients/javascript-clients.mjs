/**
 * Chats through an OpenAI-compatible endpoint with two JavaScript clients: javascript-clients.mjs URL MARKER OVER_TOKENS, key in CLIENT_KEY.
 * Runs where their packages are. Prints one JSON object a line, as python_clients.py does.
 */
import { readFileSync } from 'node:fs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';

const [, , url, marker, overTokens] = process.argv;
const apiKey = process.env.CLIENT_KEY;
const cue = 'the code of the client: ';
const question = `${cue}${marker} is kept. ${cue}`;
const overLong = 'a'.repeat(Number(overTokens));

function versionOf(name) {
  return JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version;
}

async function say(client, how, run) {
  const row = { client, version: versionOf(client), how };
  try {
    const { text, tokens } = await run();
    process.stdout.write(`${JSON.stringify({ ...row, ok: text.includes(marker), tokens, error: null })}\n`);
  } catch (thrown) {
    const status = thrown.status ?? thrown.statusCode ?? null;
    process.stdout.write(`${JSON.stringify({ ...row, ok: false, tokens: null, error: thrown.name, status })}\n`);
  }
}

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

async function completion(prompt) {
  const answer = await openai.completions.create({ model: 'lab', prompt, max_tokens: 40, temperature: 0 });
  return { text: answer.choices[0].text, tokens: answer.usage.prompt_tokens };
}

async function streamedChat() {
  const stream = await openai.chat.completions.create({
    model: 'lab',
    messages: [{ role: 'user', content: question }],
    max_tokens: 60,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = '';
  let tokens = null;
  for await (const part of stream) {
    for (const choice of part.choices) text += choice.delta.content ?? '';
    tokens = part.usage?.prompt_tokens ?? tokens;
  }
  return { text, tokens };
}

const provider = createOpenAICompatible({ name: 'gateway', baseURL: `${url}/v1`, apiKey });
const model = provider('lab');

async function generated(prompt) {
  const { text, usage } = await generateText({ model, prompt, maxOutputTokens: 60, temperature: 0, maxRetries: 0 });
  return { text, tokens: usage.inputTokens };
}

async function streamedText() {
  const { textStream } = streamText({ model, prompt: question, maxOutputTokens: 60, temperature: 0, maxRetries: 0 });
  let text = '';
  for await (const part of textStream) text += part;
  return { text, tokens: null };
}

await say('openai', 'completion', () => completion(question));
await say('openai', 'streamed chat', streamedChat);
await say('openai', 'over-long completion', () => completion(overLong));
await say('ai', 'generateText', () => generated(question));
await say('ai', 'streamText', streamedText);
await say('ai', 'over-long generateText', () => generated(overLong));
