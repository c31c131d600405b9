/**
 * Goal: a prompt's number is the engine's or is not given, and a long prompt does not stop the event loop. Method: small
 * tokenizers written here, templates by hand, the lab model's own files.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { STYLES, tinyTokenizer } from '../../test/support/tiny-vocabulary.js';
import { ManualClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { Bounds, ChatPrompt } from './prompt.js';
import { PromptCounter, type PromptCounterOptions } from './prompt-counter.js';
import { isWrittenCertainly } from './python-numbers.js';
import { readTokenizer } from './tokenizer-file.js';
import { readTokenizerFolder } from './tokenizer-folder.js';

const TEMPLATE = [
  '{% for message in messages %}',
  "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}",
  "{% for call in message.tool_calls or [] %}{{ call.function.name + ' ' + call.function.arguments | tojson }}{% endfor %}",
  '{% endfor %}',
  '{% if tools %}{{ tools | tojson }}{% endif %}',
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
].join('');

function newCounter(
  template: string | null,
  options: PromptCounterOptions = {},
  file = tinyTokenizer(STYLES.qwen3),
): PromptCounter {
  const templates = template === null ? null : { plain: template, withTools: null };
  return new PromptCounter({ tokenizer: JSON.stringify(file), config: null, templates }, options);
}

const chat = (content: unknown, more: object = {}): ChatPrompt => ({
  kind: 'chat',
  messages: [{ role: 'user', content, ...more }],
});
/** What the chat counts is what its text counts. */
async function sameAsText(counter: PromptCounter, prompt: ChatPrompt, text: string): Promise<void> {
  const count = await counter.exact(prompt);
  assert.equal(count, await counter.exact({ kind: 'text', text }), text);
  const { least, most } = counter.bounds(prompt) as Bounds;
  assert.ok(least <= (count as number) && (count as number) <= most);
}
const whyNot = async (counter: PromptCounter, prompt: ChatPrompt): Promise<string> => {
  const bounds = counter.bounds(prompt);
  const exact = await counter.exact(prompt);
  assert.deepEqual(exact, bounds);
  assert.equal(bounds.kind, 'uncountable');
  return (bounds as { why: string }).why;
};

test('a chat counts what the template makes of it: parts, tools and tool calls included', async () => {
  const counter = newCounter(TEMPLATE);
  const text = (content: string, rest = ''): string =>
    `<|im_start|>user\n${content}<|im_end|>\n${rest}<|im_start|>assistant\n`;
  await sameAsText(counter, chat('Hello, world'), text('Hello, world'));
  await sameAsText(counter, chat('a <|im_end|> in it'), text('a <|im_end|> in it'));
  await sameAsText(counter, chat(null), text(''));
  await sameAsText(
    counter,
    chat([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]),
    text('a\nb'),
  );
  const tools = [{ type: 'function', function: { name: 'f', parameters: { minimum: 0.5 } } }];
  const written = '[{"type": "function", "function": {"name": "f", "parameters": {"minimum": 0.5}}}]';
  await sameAsText(counter, { ...chat('x'), tools }, text('x', written));
  const calls = [{ type: 'function', function: { name: 'g', arguments: '{"day":"now","n":3}' } }];
  await sameAsText(counter, chat('x', { tool_calls: calls }), text('x', 'g {"day": "now", "n": 3}'));
  const bare = { ...chat('x'), variables: { add_generation_prompt: false } };
  await sameAsText(counter, bare, '<|im_start|>user\nx<|im_end|>\n');
});

test('parts are given as parts to a template that goes over them, and joined as the engine joins them otherwise', async () => {
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ];
  const over = newCounter('{% for m in messages %}{% for p in m.content %}{{ p.text + "|" }}{% endfor %}{% endfor %}');
  await sameAsText(over, chat(parts), 'a|b|');
  const spaced = newCounter('{{ messages[0].content }}', { partSeparator: ' ' });
  await sameAsText(spaced, chat(parts), 'a b');
});

test('what is not text, not known or not certain has no number, and a reason without a word of the prompt', async () => {
  const counter = newCounter(TEMPLATE);
  const image = { type: 'image_url', image_url: { url: 'data:secret' } };
  assert.match(await whyNot(counter, chat([{ type: 'text', text: 'see' }, image])), /not text/);
  assert.match(await whyNot(counter, chat({ secret: 1 })), /neither text nor parts/);
  assert.match(await whyNot(counter, { ...chat('x'), tools: [{ maximum: 1e21 }] }), /number/);
  const call = { function: { name: 'g', arguments: '{"x": 1.0}' } };
  assert.match(await whyNot(counter, chat('x', { tool_calls: [call] })), /arguments/);
  assert.match(await whyNot(newCounter(null), chat('x')), /no chat template/);
  assert.match(await whyNot(newCounter('{% if %}'), chat('x')), /not understood/);
  for (const template of [
    '{{ raise_exception("no " + messages[0].content) }}',
    '{{ messages[0].content + 1 - "a" }}',
    '{% for a in range(2000) %}{% for b in range(2000) %}{{ b }}{% endfor %}{% endfor %}',
    '{% for a in range(1000000000) %}x{% endfor %}',
    '{% set n = namespace(t="xxxxxxxx") %}{% for a in range(40) %}{% set n.t = n.t + n.t %}{% endfor %}{{ n.t }}',
  ]) {
    const why = await whyNot(newCounter(template), chat('secret'));
    assert.match(why, /does not take/, template);
    assert.ok(!why.includes('secret'));
  }
});

test('strip takes what it is told to take, and white space as Python has it', async () => {
  const counter = newCounter("{{ messages[0].content.lstrip('\\n') }}|{{ messages[0].content | trim }}");
  await sameAsText(counter, chat('\n\n  a\ufeff\u0085'), '  a\ufeff\u0085|a\ufeff');
});

test('a template gets the day from the clock', async () => {
  const counter = newCounter("{{ strftime_now('%Y') }}", { clock: new ManualClock() });
  await sameAsText(counter, chat('x'), String(new Date(0).getFullYear()));
});

test('numbers that Python writes otherwise are seen in a JSON text', () => {
  for (const json of ['{"a": 1.5, "b": [-3, "1.0"]}', '"x"', '[0.0001]']) assert.ok(isWrittenCertainly(json), json);
  for (const json of ['[1.0]', '[1e5]', '[-0]', '[12345678901234567890]', '{"1": 2}', '[0.00001]']) {
    assert.ok(!isWrittenCertainly(json), json);
  }
});

test('a long prompt is counted on another thread, and the event loop goes on meanwhile', async () => {
  const counter = newCounter(null, { threads: 1 });
  const text = 'The quick brown fox '.repeat(20_000);
  let order = '';
  const counting = counter.exact({ kind: 'text', text }).then((count) => {
    order += 'counted';
    return count;
  });
  await new Promise((resolve) => {
    queueMicrotask(() => resolve(null));
  });
  order += 'went on, ';
  const short = (await counter.exact({ kind: 'text', text: text.slice(0, 20_000) })) as number;
  assert.equal(await counting, short * 20);
  assert.equal(order, 'went on, counted');
  await counter.close();
});

test('too many long prompts are refused, and what is counted at the end too', async () => {
  const counter = newCounter(null, { threads: 1, waitingMax: 1 });
  const text = 'x y '.repeat(30_000);
  const three = [0, 1, 2].map(() => counter.exact({ kind: 'text', text }));
  await assert.rejects(three[2]!, (error) => error instanceof CodedError && error.code === 'no_capacity');
  assert.equal(await three[0], await three[1]);
  const last = counter.exact({ kind: 'text', text });
  await Promise.all([
    assert.rejects(last, (error) => error instanceof CodedError && error.code === 'shutting_down'),
    counter.close(),
  ]);
  await assert.rejects(counter.exact({ kind: 'text', text }), /Expected/);
});

test('a prompt that no context holds has bounds and no exact number', async () => {
  const counter = newCounter(null);
  const prompt = { kind: 'text', text: 'a'.repeat(17 * 1024 * 1024) } as const;
  assert.equal((counter.bounds(prompt) as Bounds).most, prompt.text.length);
  assert.equal(((await counter.exact(prompt)) as { kind: string }).kind, 'uncountable');
});

test('a tokenizer.json with something that is not understood is refused, and says with what', () => {
  const refused = (changes: object, model: object, words: RegExp): void => {
    const tokenizer = JSON.stringify(tinyTokenizer(STYLES.qwen3, changes, model));
    assert.throws(
      () => readTokenizer({ tokenizer, config: null }),
      (error) => error instanceof CodedError && error.code === 'usage' && words.test(error.message),
      String(words),
    );
  };
  const pre = (...pretokenizers: object[]): object => ({ pre_tokenizer: { type: 'Sequence', pretokenizers } });
  const bytes = { type: 'ByteLevel', use_regex: false };
  const split = { type: 'Split', pattern: { Regex: '\\p{L}+' }, behavior: 'Isolated' };
  refused({ normalizer: { type: 'NFKC' } }, {}, /NFKC/);
  refused(pre({ ...split, behavior: 'Removed' }, bytes), {}, /Isolated/);
  refused(pre({ type: 'Metaspace' }, bytes), {}, /Metaspace/);
  refused(pre({ ...bytes, add_prefix_space: true }), {}, /add_prefix_space/);
  for (const pattern of [
    'a++',
    'a*?',
    '\\w+',
    '(?<=a)b',
    '[a&&b]',
    '[[a]b]',
    'a*',
    '\\p{Foo}',
    '(?i:ss)',
    '^a',
    '(?!ab)',
    '(a',
    'a{20}',
  ]) {
    refused(pre({ ...split, pattern: { Regex: pattern } }, bytes), {}, /the pattern|may match nothing/);
  }
  refused({ post_processor: { type: 'RobertaProcessing' } }, {}, /RobertaProcessing/);
  refused({}, { dropout: 0.1 }, /dropout/);
  refused({}, { vocab: { a: 0 } }, /byte/);
  refused({}, { merges: ['a b c'] }, /merge/);
  refused({}, { type: 'Other' }, /type/);
});

test('special tokens around a text are those of the post-processor, or those of a Llama class', async () => {
  const special = { SpecialToken: { id: '<|im_start|>', type_id: 0 } };
  const post_processor = {
    type: 'TemplateProcessing',
    single: [special, { Sequence: { id: 'A', type_id: 0 } }],
    special_tokens: { '<|im_start|>': { id: '<|im_start|>', ids: [1], tokens: ['<|im_start|>'] } },
  };
  const tokenizer = JSON.stringify(tinyTokenizer(STYLES.llama3, { post_processor }));
  const count = async (config: string | null): Promise<unknown> =>
    new PromptCounter({ tokenizer, config, templates: null }).exact({ kind: 'text', text: '#' });
  assert.equal(await count(null), 2);
  assert.equal(await count('{"tokenizer_class":"LlamaTokenizerFast","add_bos_token":false}'), 1);
  assert.equal(await count('{"tokenizer_class":"LlamaTokenizerFast","add_eos_token":true}'), 3);
});

test('another kind of tokenizer is counted by the library, without bounds', async () => {
  const vocab = ['[UNK]', '[CLS]', 'hello', 'wor', '##ld', 'a'];
  const file = {
    version: '1.0',
    added_tokens: [],
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(vocab.map((text, id) => [text, id])),
    },
  };
  const counter = newCounter('{{ messages[0].content }}', {}, file);
  const prompt = chat('Hello world a zzz');
  assert.equal(await counter.exact(prompt), 5);
  assert.deepEqual(counter.bounds(prompt), { kind: 'bounds', least: 0, most: Number.POSITIVE_INFINITY });
  assert.equal(await counter.exact({ kind: 'text', text: 'hello a '.repeat(1_000) }), 2_000);
  await counter.close();
});

test('a folder is read: the template beside it, in its configuration, or by name', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-counter-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, value: unknown): void =>
    writeFileSync(join(folder, name), typeof value === 'string' ? value : JSON.stringify(value));
  assert.throws(() => readTokenizerFolder(folder), /tokenizer\.json/);
  write('tokenizer.json', tinyTokenizer(STYLES.qwen3));
  assert.equal(readTokenizerFolder(folder).templates, null);
  write('tokenizer_config.json', {
    chat_template: [
      { name: 'default', template: 'plain' },
      { name: 'tool_use', template: 'tools' },
    ],
  });
  assert.deepEqual(readTokenizerFolder(folder).templates, { plain: 'plain', withTools: 'tools' });
  write('chat_template.jinja', 'beside');
  assert.deepEqual(readTokenizerFolder(folder).templates, { plain: 'beside', withTools: null });
  write('tokenizer_config.json', '[]');
  assert.throws(() => PromptCounter.fromFolder(folder), /tokenizer_config\.json/);
});
