/**
 * Goal: what the engines of a model can be asked for passes as it came, checked; the rest is refused as if nothing could be asked for.
 * Method: bodies through the whole policy, with every feature and with none.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALL_FEATURES } from '../../test/support/scripted-upstream.js';
import { CodedError } from '../base/errors.js';
import type { UpstreamFeature } from '../upstream/upstream.js';
import type { Route } from '../wire/openai.js';
import { type ParsedRequest, readRequest } from './policy.js';

type Body = Record<string, unknown>;

function read(body: Body, features: Iterable<UpstreamFeature> = ALL_FEATURES, route: Route = 'chat'): ParsedRequest {
  const known = new Set(features);
  return readRequest(route, body, { guarded: true, models: ['lab'], temperatureDefault: 1, features: () => known });
}

/** The code and the path of the refusal. */
function refusal(body: Body, features: Iterable<UpstreamFeature> = ALL_FEATURES, route: Route = 'chat'): string {
  try {
    read(body, features, route);
  } catch (thrown) {
    assert.ok(thrown instanceof CodedError, String(thrown));
    assert.ok(!thrown.message.includes('secret'), thrown.message);
    return `${thrown.code} ${thrown.param}`;
  }
  return 'passed';
}

const USER = { role: 'user', content: 'hi' };
const chat = (extra: Body = {}): Body => ({ model: 'lab', messages: [USER], ...extra });
const said = (...messages: unknown[]): Body => chat({ messages });
const TOOL = {
  type: 'function',
  function: {
    name: 'look_up',
    description: 'Looks a thing up.',
    strict: true,
    // Names that engines read elsewhere: in a schema they are the tenant's own.
    parameters: { type: 'object', properties: { rid: { type: 'string' }, kv_transfer_params: {}, priority: {} } },
  },
};
const CALL = { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{"rid":"a"}' } };
const SCHEMA = { name: 'out', strict: true, schema: { properties: { cache_salt: {}, session_id: {} } } };
const PNG = 'data:image/png;base64,iVBORw0KGgo=';
const image = (url: unknown, extra: Body = {}): Body =>
  said({
    role: 'user',
    content: [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url, ...extra } },
    ],
  });

/** By feature: fields that pass with it, and are refused without it. */
const PASSING: readonly [UpstreamFeature, Body, Route?][] = [
  ['sampling', { top_p: 0.5 }],
  ['sampling', { top_k: 40 }],
  ['sampling', { min_p: 0.1 }],
  ['sampling', { frequency_penalty: -0.5 }],
  ['sampling', { presence_penalty: 2 }],
  ['sampling', { repetition_penalty: 1.1 }],
  ['sampling', { logit_bias: { '50256': -100 } }],
  ['sampling', { top_p: 0.5 }, 'completions'],
  ['tools', { tools: [TOOL] }],
  ['tools', { tools: [TOOL], tool_choice: 'required', parallel_tool_calls: false }],
  ['tools', { tools: [TOOL], tool_choice: { type: 'function', function: { name: 'look_up' } } }],
  ['response-format', { response_format: { type: 'json_object' } }],
  ['response-format', { response_format: { type: 'json_schema', json_schema: SCHEMA } }],
  ['logprobs', { logprobs: true, top_logprobs: 20 }],
  ['logprobs', { logprobs: 3 }, 'completions'],
  ['reasoning', { reasoning_effort: 'high' }],
];

describe('a request beyond plain text', () => {
  for (const [feature, fields, route = 'chat'] of PASSING) {
    const body = route === 'chat' ? chat(fields) : { model: 'lab', prompt: 'hi', ...fields };
    test(`${JSON.stringify(fields).slice(0, 60)} on ${route} passes as it came with \`${feature}\` alone, and not without`, () => {
      assert.deepEqual(read(body, [feature], route).params, fields);
      const others = [...ALL_FEATURES].filter((each) => each !== feature);
      const name = Object.keys(fields)[0];
      assert.equal(refusal(body, others, route), `invalid_request ${name}`);
      assert.equal(refusal(body, [], route), `invalid_request ${name}`);
    });
  }

  test('that asks for plain text has no parameters, whatever could be asked for', () => {
    assert.deepEqual(read(chat({ logprobs: false, tools: [], tool_choice: 'auto', stop: 'x' })).params, {});
    assert.equal(read(chat()).prompt.kind === 'chat' && 'rich' in read(chat()).prompt, false);
  });

  const wrong: [string, Body, string][] = [
    ['top_p above 1', { top_p: 1.5 }, 'top_p'],
    ['top_p that is no number', { top_p: Number.NaN }, 'top_p'],
    ['a penalty as a string', { presence_penalty: '1' }, 'presence_penalty'],
    ['a fractional top_k', { top_k: 1.5 }, 'top_k'],
    ['a bias of a word', { logit_bias: { secret: 1 } }, 'logit_bias'],
    ['a bias of 101', { logit_bias: { '1': 101 } }, 'logit_bias.1'],
    ['1,025 biases', { logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, i) => [i, 1])) }, 'logit_bias'],
    ['129 tools', { tools: Array.from({ length: 129 }, () => TOOL) }, 'tools'],
    ['tools that are no array', { tools: { 0: { type: 'function' } } }, 'tools'],
    ['a tool that is null', { tools: [null] }, 'tools[0]'],
    ['a tool of another type', { tools: [{ type: 'mcp', function: TOOL.function }] }, 'tools[0].type'],
    ['a tool with more in it', { tools: [{ ...TOOL, x: 1 }] }, 'tools[0].x'],
    [
      'a function with more in it',
      { tools: [{ ...TOOL, function: { ...TOOL.function, x: 1 } }] },
      'tools[0].function.x',
    ],
    ['a function without a name', { tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name'],
    [
      'a function with words for a name',
      { tools: [{ type: 'function', function: { name: 'a secret' } }] },
      'tools[0].function.name',
    ],
    [
      'parameters that are no object',
      { tools: [{ type: 'function', function: { name: 'a', parameters: [] } }] },
      'tools[0].function.parameters',
    ],
    ['a choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    ['an unknown choice', { tools: [TOOL], tool_choice: 'secret' }, 'tool_choice'],
    [
      'a choice with more in it',
      { tools: [TOOL], tool_choice: { type: 'function', function: { name: 'a', b: 1 } } },
      'tool_choice.function.b',
    ],
    ['a grammar', { response_format: { type: 'structural_tag' } }, 'response_format.type'],
    [
      'a schema for another type',
      { response_format: { type: 'json_object', json_schema: SCHEMA } },
      'response_format.json_schema',
    ],
    ['a format with more in it', { response_format: { type: 'text', x: 1 } }, 'response_format.x'],
    ['21 top_logprobs', { logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
    ['top_logprobs alone', { top_logprobs: 2 }, 'top_logprobs'],
    ['logprobs as a number', { logprobs: 2 }, 'logprobs'],
    ['an unknown effort', { reasoning_effort: 'secret' }, 'reasoning_effort'],
    ['n 2', { n: 2 }, 'n'],
    ['functions', { functions: [{ name: 'a' }] }, 'functions'],
    ['an unknown field', { best_of: 1 }, 'best_of'],
  ];
  for (const [title, fields, param] of wrong) {
    test(`with ${title} is refused, naming ${param}`, () => {
      assert.equal(refusal(chat(fields)), `invalid_request ${param}`);
    });
  }

  const internal: [string, Body, string][] = [
    ['in a tool, beside its function', { tools: [{ ...TOOL, cache_salt: 'a' }] }, 'tools[0].cache_salt'],
    [
      'in a function, beside its schema',
      { tools: [{ ...TOOL, function: { ...TOOL.function, rid: 1 } }] },
      'tools[0].function.rid',
    ],
    [
      'in a schema’s frame',
      { response_format: { type: 'json_schema', json_schema: { ...SCHEMA, lora_path: 1 } } },
      'response_format.json_schema.lora_path',
    ],
    [
      'where a schema would be, one level off',
      { tools: [{ type: 'function', parameters: { rid: 1 } }] },
      'tools[0].parameters.rid',
    ],
    [
      'in tools that are an object',
      { tools: { function: { parameters: { rid: 1 } } } },
      'tools.function.parameters.rid',
    ],
    [
      'in a call of an earlier answer',
      { messages: [USER, { role: 'assistant', content: '', tool_calls: [{ ...CALL, rid: 1 }] }] },
      'messages[1].tool_calls[0].rid',
    ],
    ['as a guided grammar', { guided_json: {} }, 'guided_json'],
    ['in extra_body', { extra_body: { chat_template_kwargs: {} } }, 'extra_body.chat_template_kwargs'],
    ['in vllm_xargs', { vllm_xargs: { a: 1 } }, 'vllm_xargs'],
    ['for the template', { chat_template_kwargs: { enable_thinking: false } }, 'chat_template_kwargs'],
    ['for images', { mm_processor_kwargs: {} }, 'mm_processor_kwargs'],
    ['as documents', { documents: [] }, 'documents'],
  ];
  for (const [title, fields, param] of internal) {
    test(`with a field that only engines may set ${title} is refused as such`, () => {
      assert.equal(refusal(chat(fields)), `field_not_allowed ${param}`);
      assert.equal(refusal(chat(fields), []), `field_not_allowed ${param}`);
    });
  }

  test('is refused on the text route where only a chat has such fields', () => {
    for (const field of ['tools', 'response_format', 'reasoning_effort', 'top_logprobs'])
      assert.equal(
        refusal({ model: 'lab', prompt: 'a', [field]: [] }, ALL_FEATURES, 'completions'),
        `invalid_request ${field}`,
      );
    assert.equal(
      refusal({ model: 'lab', prompt: 'a', echo: true }, ALL_FEATURES, 'completions'),
      'invalid_request echo',
    );
    assert.equal(
      refusal({ model: 'lab', prompt: 'a', best_of: 2 }, ALL_FEATURES, 'completions'),
      'invalid_request best_of',
    );
  });
});

describe('messages beyond plain text', () => {
  test('of a round of calls go to the engine as they came, and their text is apart', () => {
    const messages = [
      USER,
      { role: 'assistant', content: null, refusal: null, reasoning_content: 'hm', tool_calls: [{ ...CALL, index: 0 }] },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'found' }] },
    ];
    const { prompt, params } = read({ model: 'lab', messages, tools: [TOOL], tool_choice: 'auto' });
    assert.deepEqual(params, { tools: [TOOL], tool_choice: 'auto' });
    assert.ok(prompt.kind === 'chat');
    assert.deepEqual(prompt.messages, [USER, { role: 'assistant', content: '' }, { role: 'tool', content: 'found' }]);
    assert.deepEqual(prompt.rich, {
      messages: [
        USER,
        { role: 'assistant', content: '', reasoning_content: 'hm', tool_calls: [CALL] },
        { role: 'tool', content: 'found', tool_call_id: 'call_1' },
      ],
      tools: [TOOL],
      fields: { tool_choice: 'auto' },
      hasData: false,
    });
  });

  test('may hold what clients’ helpers made of an answer, of which nothing goes on', () => {
    const answer = {
      role: 'assistant',
      content: 'x',
      parsed: { rid: 1 },
      tool_calls: [{ ...CALL, function: { ...CALL.function, parsed_arguments: { rid: 'a' } } }],
    };
    const { prompt } = read(said(USER, answer));
    assert.ok(prompt.kind === 'chat');
    assert.deepEqual(prompt.rich?.messages[1], { role: 'assistant', content: 'x', tool_calls: [CALL] });
  });

  test('with an image in the request itself keep it, and say that they hold data', () => {
    const { prompt } = read(image(PNG, { detail: 'low' }));
    assert.ok(prompt.kind === 'chat' && prompt.rich?.hasData === true);
    assert.deepEqual(prompt.messages, [{ role: 'user', content: 'see' }]);
    assert.deepEqual(prompt.rich.messages[0]!.content, [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: PNG, detail: 'low' } },
    ]);
  });

  test('with sound and files in the request itself pass too', () => {
    const parts = [
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } },
    ];
    assert.equal(refusal(said({ role: 'user', content: parts })), 'passed');
  });

  const URL_PATH = 'messages[0].content[1].image_url.url';
  const addresses = [
    'http://127.0.0.1/secret',
    'https://x/secret',
    'file:///etc/secret',
    'HTTPS://x/secret',
    ' data:image/png;base64,AAAA',
    'data:image/svg+xml;base64,AAAA',
    'data:image/png,secret',
    'data:image/png;base64,AA AA',
    'data:image/png;base64,',
    'data:image/png;charset=x;base64,AAAA',
    '/etc/secret',
    7,
    null,
  ];
  for (const url of addresses) {
    test(`with an image by ${JSON.stringify(url)} are refused, whatever the engine can do`, () => {
      assert.equal(refusal(image(url)), `invalid_request ${URL_PATH}`);
    });
  }

  const wrong: [string, Body, string][] = [
    [
      'an image as a bare string',
      said({ role: 'user', content: [{ type: 'image_url', image_url: PNG }] }),
      'messages[0].content[0].image_url',
    ],
    [
      'an image with an id of the engine’s cache',
      said({ role: 'user', content: [{ type: 'image_url', image_url: { url: PNG }, uuid: 'a' }] }),
      'messages[0].content[0].uuid',
    ],
    [
      'an image of the assistant',
      said(USER, { role: 'assistant', content: [{ type: 'image_url', image_url: { url: PNG } }] }),
      'messages[1].content[0].type',
    ],
    [
      'a video',
      said({ role: 'user', content: [{ type: 'video_url', video_url: { url: PNG } }] }),
      'messages[0].content[0].type',
    ],
    [
      '65 images',
      said({
        role: 'user',
        content: Array.from({ length: 65 }, () => ({ type: 'image_url', image_url: { url: PNG } })),
      }),
      'messages[0].content[64]',
    ],
    [
      'a file by its id',
      said({ role: 'user', content: [{ type: 'file', file: { file_id: 'a' } }] }),
      'messages[0].content[0].file.file_id',
    ],
    ['a result without its call', said(USER, { role: 'tool', content: 'x' }), 'messages[1].tool_call_id'],
    ['calls of the user', said({ ...USER, tool_calls: [CALL] }), 'messages[0].tool_calls'],
    [
      'a call without an id',
      said(USER, { role: 'assistant', content: '', tool_calls: [{ ...CALL, id: undefined }] }),
      'messages[1].tool_calls[0].id',
    ],
    [
      'a call with an object for arguments',
      said(USER, { role: 'assistant', content: '', tool_calls: [{ ...CALL, function: { name: 'a', arguments: {} } }] }),
      'messages[1].tool_calls[0].function.arguments',
    ],
    ['no content and no call', said(USER, { role: 'assistant', content: null }), 'messages[1].content'],
    ['reasoning of the user', said({ ...USER, reasoning_content: 'x' }), 'messages[0].reasoning_content'],
    [
      'reasoning that is no text',
      said(USER, { role: 'assistant', content: 'x', reasoning_content: {} }),
      'messages[1].reasoning_content',
    ],
  ];
  for (const [title, body, param] of wrong) {
    test(`with ${title} are refused, naming ${param}`, () => {
      assert.equal(refusal(body), `invalid_request ${param}`);
    });
  }

  test('with more data than a request may hold are refused', () => {
    const big = `data:image/png;base64,${'A'.repeat(6 * 1024 * 1024)}`;
    assert.equal(refusal(image(big)), `invalid_request ${URL_PATH}`);
  });
});
