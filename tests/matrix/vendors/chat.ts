/** A vendor of chat completions: answers in its true wire form, and reads requests as strictly as the real one. */
import assert from 'node:assert/strict';
import type { Received } from '../../helpers/vendor.ts';
import type { Arrived, ArrivedPart, ArrivedTurn, Meaning, Play, VendorWords } from '../scenario.ts';
import { dataUrl, type Json, list, object, onlyMembers, pieces, text, toolName } from './pieces.ts';

const finishes: Readonly<Record<Meaning, string>> = {
  stop: 'stop',
  'stop-sequence': 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  refusal: 'stop',
};

const head = { id: 'chatcmpl-DfG7QbSrYk2', created: 1_763_500_000 };

export const chatVendor: VendorWords = {
  protocol: 'chat',
  lacks: new Set(['signature', 'result-image', 'result-error', 'stop-sequence']),

  whole(play, model) {
    const message = {
      role: 'assistant',
      content: play.isBlocked ? '' : (play.text ?? null),
      refusal: play.refusal ?? null,
      annotations: [],
      ...(play.reasoning ? { reasoning_content: play.reasoning.text } : {}),
      ...(play.calls
        ? { tool_calls: play.calls.map((call) => callOf(call.id, call.name, JSON.stringify(call.input))) }
        : {}),
    };
    const body = {
      id: head.id,
      object: 'chat.completion',
      created: head.created,
      model,
      choices: [
        { index: 0, message, logprobs: null, finish_reason: finishOf(play) },
        ...(play.second === undefined
          ? []
          : [{ index: 1, message: { ...message, content: play.second }, logprobs: null, finish_reason: 'stop' }]),
      ],
      usage: usageOf(play),
      service_tier: 'default',
      system_fingerprint: 'fp_1',
    };
    return `${JSON.stringify(body, null, 2)}\n`;
  },

  stream(play, model) {
    const chunk = (delta: object, finish: string | null = null, index = 0) =>
      frame({
        ...head,
        object: 'chat.completion.chunk',
        model,
        service_tier: 'default',
        choices: [{ index, delta, logprobs: null, finish_reason: finish }],
        usage: null,
        obfuscation: 'x1y2z',
      });
    return [
      chunk({ role: 'assistant', content: play.calls ? null : '', refusal: null }),
      ...pieces(play.reasoning?.text ?? '').map((piece) => chunk({ reasoning_content: piece })),
      ...(play.second === undefined ? [] : [chunk({ role: 'assistant', content: play.second }, null, 1)]),
      ...pieces(play.text ?? '').map((piece) => chunk({ content: piece })),
      ...pieces(play.refusal ?? '').map((piece) => chunk({ refusal: piece })),
      ...(play.calls ?? []).flatMap(({ id, name, input }, index) => [
        chunk({ tool_calls: [{ index, ...callOf(id, name, '') }] }),
        ...pieces(JSON.stringify(input)).map((piece) =>
          chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ]),
      chunk({}, finishOf(play)),
      ...(play.second === undefined ? [] : [chunk({}, 'stop', 1)]),
      frame({ ...head, object: 'chat.completion.chunk', model, choices: [], usage: usageOf(play) }),
      'data: [DONE]\n\n',
    ];
  },

  fault: (fault) => ({
    headers: { 'content-type': 'application/json' },
    ...(fault === 'overloaded'
      ? { status: 503, body: JSON.stringify(overloaded) }
      : { status: 400, body: JSON.stringify(tooLong) }),
  }),

  faultFrames: () => [frame(overloaded)],

  read: (request) => read(request),
};

const overloaded = {
  error: {
    message: 'The engine is currently overloaded, please try again later',
    type: 'server_error',
    param: null,
    code: 'server_is_overloaded',
  },
};
const tooLong = {
  error: {
    message: "This model's maximum context length is 200 tokens. However, your messages resulted in 300 tokens.",
    type: 'invalid_request_error',
    param: 'messages',
    code: 'context_length_exceeded',
  },
};

const frame = (payload: object) => `data: ${JSON.stringify(payload)}\n\n`;

function callOf(id: string, name: string, input: string): object {
  return { id, type: 'function', function: { name, arguments: input } };
}

const finishOf = (play: Play) => (play.isBlocked ? 'content_filter' : finishes[play.meaning]);

function usageOf({ usage }: Play): object {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning, audio_tokens: 0 },
  };
}

// ---------------------------------------------------------------------------------------------------------- the request

const known = [
  ...['model', 'messages', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'stop', 'n'],
  ...['tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'reasoning_effort', 'store', 'metadata'],
  ...['safety_identifier', 'prompt_cache_key', 'user', 'temperature', 'top_p', 'seed', 'logit_bias', 'verbosity'],
  ...['frequency_penalty', 'presence_penalty'],
];

function read({ url, headers, body }: Received): Arrived {
  assert.equal(url, '/v1/chat/completions');
  assert.equal(headers.authorization, 'Bearer vendor-key');
  const json = object(JSON.parse(body.toString()), 'the body');
  onlyMembers(json, known, 'the body');
  if (json['stream']) assert.deepEqual(json['stream_options'], { include_usage: true });
  const messages = list(json['messages'], 'messages');
  const turns: ArrivedTurn[] = [];
  const system: string[] = [];
  let open = new Set<string>();
  for (const message of messages) {
    const { role } = message;
    assert.ok(role === 'tool' || open.size === 0, 'each call is answered before the next message');
    if (role === 'system' || role === 'developer') system.push(textsOf(message['content']));
    else if (role === 'assistant') {
      const parts = assistantParts(message);
      open = new Set(parts.flatMap((part) => (part.kind === 'call' ? [part.id] : [])));
      turns.push({ by: 'assistant', parts });
    } else {
      turns.push({ by: 'user', parts: role === 'tool' ? [resultOf(message, open)] : userParts(message) });
    }
  }
  return {
    model: text(json['model'], 'model'),
    isStream: json['stream'] === true,
    system: system.join('\n\n'),
    turns,
    tools: json['tools'] === undefined ? [] : list(json['tools'], 'tools').map(toolOf),
    maxOutputTokens: (json['max_completion_tokens'] ?? json['max_tokens']) as number | undefined,
    stop: json['stop'] as string[] | undefined,
    schema: schemaOf(json['response_format']),
    effort: json['reasoning_effort'] as string | undefined,
    temperature: json['temperature'] as number | undefined,
    choices: json['n'] as number | undefined,
  };
}

function textsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content, 'content')
    .map((part) => {
      assert.equal(part['type'], 'text');
      return text(part['text'], 'text');
    })
    .join('\n');
}

function resultOf(message: Json, open: Set<string>): ArrivedPart {
  const callId = text(message['tool_call_id'], 'tool_call_id');
  assert.ok(open.delete(callId), 'a tool message answers a call of the message before');
  const reported = textsOf(message['content']);
  return { kind: 'result', callId, text: reported, images: [], isError: /^Error\b/.test(reported) };
}

function userParts(message: Json): ArrivedPart[] {
  assert.equal(message['role'], 'user');
  const { content } = message;
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return list(content, 'content').map((part): ArrivedPart => {
    if (part['type'] === 'text') return { kind: 'text', text: text(part['text'], 'text') };
    if (part['type'] === 'image_url')
      return { kind: 'image', ...dataUrl(object(part['image_url'], 'image_url')['url']) };
    if (part['type'] === 'input_audio') {
      const { data, format } = object(part['input_audio'], 'input_audio');
      return { kind: 'audio', mediaType: `audio/${text(format, 'format')}`, base64: text(data, 'data') };
    }
    assert.equal(part['type'], 'file');
    const file = object(part['file'], 'file');
    return { kind: 'file', ...dataUrl(file['file_data']), name: text(file['filename'], 'filename') };
  });
}

function assistantParts(message: Json): ArrivedPart[] {
  const { content, reasoning_content: reasoning, tool_calls: calls } = message;
  if (calls !== undefined) assert.ok((calls as unknown[]).length > 0, 'tool_calls are not empty');
  else assert.ok(typeof content === 'string' || Array.isArray(content), 'a message without calls has content');
  return [
    ...(typeof reasoning === 'string' ? [{ kind: 'reasoning', text: reasoning, signature: undefined } as const] : []),
    ...(content === null || content === undefined ? [] : [{ kind: 'text', text: textsOf(content) } as const]),
    ...(calls === undefined ? [] : list(calls, 'tool_calls')).map((call): ArrivedPart => {
      assert.equal(call['type'], 'function');
      const { name, arguments: input } = object(call['function'], 'function');
      return {
        kind: 'call',
        id: text(call['id'], 'id'),
        name: text(name, 'name'),
        input: JSON.parse(text(input, 'arguments')),
      };
    }),
  ];
}

function toolOf(tool: Json) {
  assert.equal(tool['type'], 'function');
  const { name, description, parameters } = object(tool['function'], 'function');
  assert.match(text(name, 'name'), toolName);
  return { name: name as string, description: description as string, schema: object(parameters, 'parameters') };
}

function schemaOf(format: unknown): object | undefined {
  if (format === undefined) return undefined;
  const { type, json_schema: wrapped } = object(format, 'response_format');
  assert.equal(type, 'json_schema');
  const { name, schema } = object(wrapped, 'json_schema');
  assert.match(text(name, 'name'), toolName);
  return object(schema, 'schema');
}
