/** A vendor of the responses protocol: answers in its true wire form, and reads requests as strictly as the real one. */
import assert from 'node:assert/strict';
import type { Received } from '../../helpers/vendor.ts';
import type { Arrived, ArrivedPart, ArrivedTurn, Play, VendorWords } from '../scenario.ts';
import { dataUrl, type Json, list, object, onlyMembers, pieces, text, toolName } from './pieces.ts';

export const responsesVendor: VendorWords = {
  protocol: 'responses',
  lacks: new Set(['audio', 'choices', 'stop', 'stop-sequence', 'result-error']),

  whole: (play, model) => `${JSON.stringify(responseOf(play, model, 'done'), null, 2)}\n`,

  stream(play, model) {
    let sequence = 0;
    const frame = (type: string, members: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...members })}\n\n`;
    const running = responseOf(play, model, 'running');
    const frames = [
      frame('response.created', { response: running }),
      frame('response.in_progress', { response: running }),
    ];
    for (const [index, item] of outputOf(play).entries()) frames.push(...itemFrames(item, index, frame));
    const last = responseOf(play, model, 'done');
    frames.push(frame(`response.${(last as Json)['status']}`, { response: last }));
    return frames;
  },

  fault: (fault) => ({
    headers: { 'content-type': 'application/json' },
    ...(fault === 'overloaded'
      ? { status: 503, body: JSON.stringify({ error: overloaded }) }
      : { status: 400, body: JSON.stringify({ error: tooLong }) }),
  }),

  faultFrames: (after) => [
    `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: after, error: overloaded })}\n\n`,
    `event: response.failed\ndata: ${JSON.stringify({
      type: 'response.failed',
      sequence_number: after + 1,
      response: {
        id: 'resp_68af40',
        object: 'response',
        created_at: 1_763_500_000,
        status: 'failed',
        error: { code: 'server_is_overloaded', message: overloaded.message },
        model: 'MODEL',
        output: [],
        usage: null,
      },
    })}\n\n`,
  ],

  read: (request) => read(request),
};

const overloaded = {
  message: 'Our servers are currently overloaded. Please try again later.',
  type: 'service_unavailable_error',
  param: null,
  code: 'server_is_overloaded',
};
const tooLong = {
  message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
  type: 'invalid_request_error',
  param: 'input',
  code: 'context_length_exceeded',
};

function outputOf(play: Play): Json[] {
  const { reasoning, calls = [] } = play;
  const said =
    play.refusal === undefined
      ? { type: 'output_text', annotations: [], logprobs: [], text: play.text }
      : { type: 'refusal', refusal: play.refusal };
  const message = { id: 'msg_1', type: 'message', status: 'completed', content: [said], role: 'assistant' };
  return [
    ...(reasoning
      ? [
          {
            id: 'rs_1',
            type: 'reasoning',
            encrypted_content: reasoning.signature,
            summary: [{ type: 'summary_text', text: reasoning.text }],
          },
        ]
      : []),
    ...(play.text === undefined && play.refusal === undefined ? [] : [message]),
    ...calls.map(({ id, name, input }, index) => ({
      id: `fc_${index}`,
      type: 'function_call',
      status: 'completed',
      arguments: JSON.stringify(input),
      call_id: id,
      name,
    })),
  ];
}

function responseOf(play: Play, model: string, state: 'running' | 'done'): object {
  const reason = play.isBlocked ? 'content_filter' : play.meaning === 'length' ? 'max_output_tokens' : undefined;
  const isDone = state === 'done';
  return {
    id: 'resp_68af40',
    object: 'response',
    created_at: 1_763_500_000,
    status: isDone ? (reason === undefined ? 'completed' : 'incomplete') : 'in_progress',
    background: false,
    error: null,
    incomplete_details: isDone && reason !== undefined ? { reason } : null,
    instructions: null,
    model,
    output: isDone ? outputOf(play) : [],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
    usage: isDone ? usageOf(play) : null,
    metadata: {},
  };
}

function usageOf({ usage }: Play): object {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  };
}

type Framer = (type: string, members: object) => string;

function itemFrames(item: Json, index: number, frame: Framer): string[] {
  const at = { item_id: item['id'], output_index: index };
  const done = frame.bind(undefined, 'response.output_item.done', { output_index: index, item });
  if (item['type'] === 'function_call') {
    const input = item['arguments'] as string;
    return [
      frame('response.output_item.added', {
        output_index: index,
        item: { ...item, status: 'in_progress', arguments: '' },
      }),
      ...pieces(input).map((delta) => frame('response.function_call_arguments.delta', { ...at, delta })),
      frame('response.function_call_arguments.done', { ...at, arguments: input }),
      done(),
    ];
  }
  if (item['type'] === 'reasoning') return reasoningFrames(item, index, at, frame).concat(done());
  const [part] = item['content'] as [Json];
  return [
    frame('response.output_item.added', { output_index: index, item: { ...item, status: 'in_progress', content: [] } }),
    ...partFrames(part, { ...at, content_index: 0 }, frame),
    done(),
  ];
}

/** The item is announced with another encrypted content than the one it ends with. */
function reasoningFrames(item: Json, index: number, at: object, frame: Framer): string[] {
  const [summary] = item['summary'] as [{ text: string }];
  const place = { ...at, summary_index: 0 };
  return [
    frame('response.output_item.added', {
      output_index: index,
      item: { ...item, encrypted_content: 'gAAAAABpreliminary', summary: [] },
    }),
    frame('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } }),
    ...pieces(summary.text).map((delta) => frame('response.reasoning_summary_text.delta', { ...place, delta })),
    frame('response.reasoning_summary_text.done', { ...place, text: summary.text }),
    frame('response.reasoning_summary_part.done', { ...place, part: summary }),
  ];
}

function partFrames(part: Json, at: object, frame: Framer): string[] {
  const isRefusal = part['type'] === 'refusal';
  const said = (isRefusal ? part['refusal'] : part['text']) as string;
  const name = isRefusal ? 'response.refusal' : 'response.output_text';
  const more = isRefusal ? {} : { logprobs: [] };
  return [
    frame('response.content_part.added', { ...at, part: { ...part, [isRefusal ? 'refusal' : 'text']: '' } }),
    ...pieces(said).map((delta) => frame(`${name}.delta`, { ...at, delta, ...more, obfuscation: 'a1b2' })),
    frame(`${name}.done`, { ...at, [isRefusal ? 'refusal' : 'text']: said, ...more }),
    frame('response.content_part.done', { ...at, part }),
  ];
}

// ---------------------------------------------------------------------------------------------------------- the request

const known = [
  ...['model', 'input', 'instructions', 'stream', 'store', 'include', 'max_output_tokens', 'tools', 'tool_choice'],
  ...[
    'parallel_tool_calls',
    'text',
    'reasoning',
    'metadata',
    'safety_identifier',
    'prompt_cache_key',
    'temperature',
    'top_p',
  ],
  ...['truncation'],
];

function read({ url, headers, body }: Received): Arrived {
  assert.equal(url, '/v1/responses');
  assert.equal(headers.authorization, 'Bearer vendor-key');
  const json = object(JSON.parse(body.toString()), 'the body');
  onlyMembers(json, known, 'the body');
  const limit = json['max_output_tokens'] as number | undefined;
  assert.ok(limit === undefined || limit >= 16, 'max_output_tokens is at least 16');
  const system = json['instructions'] === undefined ? [] : [text(json['instructions'], 'instructions')];
  const turns: ArrivedTurn[] = [];
  const input = json['input'];
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : list(input, 'input');
  for (const item of items as Json[]) {
    if (item['role'] === 'system' || item['role'] === 'developer') system.push(...messageTexts(item));
    else turns.push(turnOf(item));
  }
  assertAnswered(turns);
  const form = json['text'] === undefined ? undefined : object(json['text'], 'text')['format'];
  return {
    model: text(json['model'], 'model'),
    isStream: json['stream'] === true,
    system: system.join('\n\n'),
    turns,
    tools: json['tools'] === undefined ? [] : list(json['tools'], 'tools').map(toolOf),
    maxOutputTokens: limit,
    stop: undefined,
    schema: schemaOf(form),
    temperature: json['temperature'] as number | undefined,
    choices: undefined,
    effort: json['reasoning'] === undefined ? undefined : (object(json['reasoning'], 'reasoning')['effort'] as string),
  };
}

function messageTexts(item: Json): string[] {
  const { content } = item;
  if (typeof content === 'string') return [content];
  return list(content, 'content').map((part) => {
    assert.equal(part['type'], 'input_text');
    return text(part['text'], 'text');
  });
}

function turnOf(item: Json): ArrivedTurn {
  switch (item['type']) {
    case 'function_call': {
      const { call_id: id, name, arguments: input } = item;
      const call = { id: text(id, 'call_id'), name: text(name, 'name'), input: JSON.parse(text(input, 'arguments')) };
      return { by: 'assistant', parts: [{ kind: 'call', ...call }] };
    }
    case 'function_call_output':
      return { by: 'user', parts: [resultOf(item)] };
    case 'reasoning': {
      const summary = list(item['summary'], 'summary').map((part) => text(part['text'], 'text'));
      const signature = text(item['encrypted_content'], 'encrypted_content');
      return { by: 'assistant', parts: [{ kind: 'reasoning', text: summary.join('\n\n'), signature }] };
    }
    default:
      assert.ok(item['type'] === undefined || item['type'] === 'message', `an item of type ${String(item['type'])}`);
  }
  const role = item['role'];
  assert.ok(role === 'user' || role === 'assistant');
  const { content } = item;
  const parts = typeof content === 'string' ? undefined : list(content, 'content').map((part) => partOf(part, role));
  return { by: role, parts: parts ?? [{ kind: 'text', text: content as string }] };
}

function partOf(part: Json, role: 'user' | 'assistant'): ArrivedPart {
  if (part['type'] === (role === 'user' ? 'input_text' : 'output_text'))
    return { kind: 'text', text: text(part['text'], 'text') };
  assert.equal(role, 'user', `an assistant's part of type ${String(part['type'])}`);
  if (part['type'] === 'input_image') return { kind: 'image', ...dataUrl(part['image_url']) };
  assert.equal(part['type'], 'input_file');
  return { kind: 'file', ...dataUrl(part['file_data']), name: text(part['filename'], 'filename') };
}

function resultOf(item: Json): ArrivedPart {
  const { output } = item;
  const parts = typeof output === 'string' ? [{ type: 'input_text', text: output }] : list(output, 'output');
  const read = parts.map((part) => partOf(part, 'user'));
  const reported = read.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');
  return {
    kind: 'result',
    callId: text(item['call_id'], 'call_id'),
    text: reported,
    images: read.flatMap((part) => (part.kind === 'image' ? [part] : [])),
    isError: /^Error\b/.test(reported),
  };
}

/** "No tool output found for function call …" */
function assertAnswered(turns: readonly ArrivedTurn[]): void {
  const parts = turns.flatMap((turn) => turn.parts);
  const calls = parts.flatMap((part) => (part.kind === 'call' ? [part.id] : []));
  const results = parts.flatMap((part) => (part.kind === 'result' ? [part.callId] : []));
  assert.deepEqual(results.toSorted(), calls.toSorted(), 'each call has its output');
}

function toolOf(tool: Json) {
  onlyMembers(tool, ['type', 'name', 'description', 'parameters', 'strict'], 'a tool');
  assert.equal(tool['type'], 'function');
  const { name, description, parameters } = tool;
  assert.match(text(name, 'name'), toolName);
  return { name: name as string, description: description as string, schema: object(parameters, 'parameters') };
}

function schemaOf(form: unknown): object | undefined {
  if (form === undefined) return undefined;
  const { type, name, schema } = object(form, 'format');
  if (type === 'text') return undefined;
  assert.equal(type, 'json_schema');
  assert.match(text(name, 'name'), toolName);
  return object(schema, 'schema');
}
