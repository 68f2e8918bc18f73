/** A vendor of the messages protocol: answers in its true wire form, and reads requests as strictly as the real one. */
import assert from 'node:assert/strict';
import type { Received } from '../../helpers/vendor.ts';
import type { Arrived, ArrivedPart, ArrivedTurn, Meaning, Play, VendorWords } from '../scenario.ts';
import { type Json, list, object, onlyMembers, pieces, text } from './pieces.ts';

const reasons: Readonly<Record<Meaning, string>> = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
};

export const messagesVendor: VendorWords = {
  protocol: 'messages',
  lacks: new Set(['audio', 'choices', 'file-ending']),

  whole(play, model) {
    const content = [
      ...(play.reasoning
        ? [{ type: 'thinking', thinking: play.reasoning.text, signature: play.reasoning.signature }]
        : []),
      ...(saidIn(play) === undefined ? [] : [{ type: 'text', text: saidIn(play) }]),
      ...(play.calls ?? []).map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
    ];
    return JSON.stringify({
      model,
      id: 'msg_01TfzjZNcK',
      type: 'message',
      role: 'assistant',
      content,
      ...endOf(play),
      usage: { ...inputOf(play), ...outputOf(play), service_tier: 'standard' },
    });
  },

  stream(play, model) {
    let index = 0;
    const block = (start: object, deltas: readonly object[]) => {
      const at = index++;
      return [
        frame('content_block_start', { index: at, content_block: start }),
        ...(at === 0 ? [frame('ping', {})] : []),
        ...deltas.map((delta) => frame('content_block_delta', { index: at, delta })),
        frame('content_block_stop', { index: at }),
      ];
    };
    const { reasoning } = play;
    const message = {
      model,
      id: 'msg_01TfzjZNcK',
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...inputOf(play), output_tokens: Math.min(1, play.usage.output), service_tier: 'standard' },
    };
    return [
      frame('message_start', { message }),
      ...(reasoning
        ? block({ type: 'thinking', thinking: '', signature: '' }, [
            ...pieces(reasoning.text).map((thinking) => ({ type: 'thinking_delta', thinking })),
            { type: 'signature_delta', signature: reasoning.signature },
          ])
        : []),
      ...(saidIn(play) === undefined
        ? []
        : block(
            { type: 'text', text: '' },
            pieces(saidIn(play)!).map((piece) => ({ type: 'text_delta', text: piece })),
          )),
      ...(play.calls ?? []).flatMap(({ id, name, input }) =>
        block(
          { type: 'tool_use', id, name, input: {} },
          ['', ...pieces(JSON.stringify(input))].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
        ),
      ),
      frame('message_delta', { delta: endOf(play), usage: outputOf(play) }),
      frame('message_stop', {}),
    ];
  },

  fault: (fault) => ({
    headers: { 'content-type': 'application/json' },
    ...(fault === 'overloaded'
      ? { status: 529, body: JSON.stringify(errorOf('overloaded_error', 'Overloaded')) }
      : {
          status: 400,
          body: JSON.stringify(errorOf('invalid_request_error', 'prompt is too long: 300 tokens > 200 maximum')),
        }),
  }),

  faultFrames: () => [frame('error', { error: { details: null, type: 'overloaded_error', message: 'Overloaded' } })],

  read: (request) => read(request),
};

/** The real one pads its lines; what it says is the same. */
function frame(type: string, members: object): string {
  const json = JSON.stringify({ type, ...members });
  return `event: ${type}\ndata: ${json.slice(0, -1)}   }\n\n`;
}

function errorOf(type: string, message: string): object {
  return { type: 'error', error: { type, message }, request_id: 'req_011CSH' };
}

function saidIn(play: Play): string | undefined {
  return play.refusal ?? play.text;
}

function endOf(play: Play): object {
  return {
    stop_reason: reasons[play.meaning],
    stop_sequence: play.sequence ?? null,
    ...(play.meaning === 'refusal' ? { stop_details: { type: 'refusal', category: null, explanation: null } } : {}),
  };
}

function inputOf({ usage }: Play): object {
  return {
    input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: usage.cacheWrite, ephemeral_1h_input_tokens: 0 },
  };
}

function outputOf({ usage }: Play): object {
  return {
    output_tokens: usage.output,
    ...(usage.reasoning > 0 ? { output_tokens_details: { thinking_tokens: usage.reasoning } } : {}),
  };
}

// ---------------------------------------------------------------------------------------------------------- the request

const known = [
  ...['model', 'messages', 'max_tokens', 'system', 'stream', 'stop_sequences', 'thinking', 'output_config', 'tools'],
  ...['tool_choice', 'metadata', 'cache_control', 'temperature', 'top_p', 'top_k', 'service_tier'],
];

function read({ url, headers, body }: Received): Arrived {
  assert.equal(url, '/v1/messages');
  assert.equal(headers['x-api-key'], 'vendor-key');
  assert.ok(headers['anthropic-version']);
  const json = object(JSON.parse(body.toString()), 'the body');
  onlyMembers(json, known, 'the body');
  assert.ok(Number.isInteger(json['max_tokens']), 'max_tokens is required');
  const turns = list(json['messages'], 'messages').map(turnOf);
  assert.equal(turns[0]?.by, 'user', 'the first turn is the user’s');
  assertPaired(turns);
  const output = json['output_config'] === undefined ? {} : object(json['output_config'], 'output_config');
  return {
    model: text(json['model'], 'model'),
    isStream: json['stream'] === true,
    system: json['system'] === undefined ? '' : textOf(json['system']),
    turns,
    tools: json['tools'] === undefined ? [] : list(json['tools'], 'tools').map(toolOf),
    maxOutputTokens: json['max_tokens'] as number,
    stop: json['stop_sequences'] as string[] | undefined,
    schema: schemaOf(output['format']),
    effort: output['effort'] as string | undefined,
    temperature: json['temperature'] as number | undefined,
    choices: undefined,
  };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content, 'text blocks')
    .map((block) => {
      assert.equal(block['type'], 'text');
      return nonEmpty(block['text']);
    })
    .join('\n\n');
}

function nonEmpty(value: unknown): string {
  assert.notEqual(value, '', 'text blocks are not empty');
  return text(value, 'text');
}

function turnOf(message: Json): ArrivedTurn {
  const { role, content } = message;
  assert.ok(role === 'user' || role === 'assistant', `the role ${String(role)}`);
  const parts = typeof content === 'string' ? [{ kind: 'text', text: nonEmpty(content) } as const] : undefined;
  return { by: role, parts: parts ?? list(content, 'content').map((block) => partOf(block, role)) };
}

function partOf(block: Json, role: string): ArrivedPart {
  switch (block['type']) {
    case 'text':
      return { kind: 'text', text: nonEmpty(block['text']) };
    case 'image':
      return { kind: 'image', ...sourceOf(block) };
    case 'document':
      return { kind: 'file', ...sourceOf(block), ...(block['title'] ? { name: block['title'] as string } : {}) };
    case 'thinking':
      assert.equal(role, 'assistant');
      return {
        kind: 'reasoning',
        text: text(block['thinking'], 'thinking'),
        signature: text(block['signature'], 'signature'),
      };
    case 'tool_use':
      assert.equal(role, 'assistant');
      assert.match(text(block['id'], 'id'), /^[a-zA-Z0-9_-]+$/);
      return {
        kind: 'call',
        id: block['id'] as string,
        name: text(block['name'], 'name'),
        input: object(block['input'], 'input'),
      };
    default:
      assert.equal(block['type'], 'tool_result');
      return resultOf(block);
  }
}

function resultOf(block: Json): ArrivedPart {
  const { content } = block;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content, 'content');
  const images = blocks.filter((one) => one['type'] === 'image').map(sourceOf);
  return {
    kind: 'result',
    callId: text(block['tool_use_id'], 'tool_use_id'),
    text: textOf(blocks.filter((one) => one['type'] !== 'image')),
    images,
    isError: block['is_error'] === true,
  };
}

function sourceOf(block: Json): { mediaType: string; base64: string } {
  const source = object(block['source'], 'source');
  assert.equal(source['type'], 'base64');
  return { mediaType: text(source['media_type'], 'media_type'), base64: text(source['data'], 'data') };
}

/** All results of a turn's calls come first in the very next turn; roles alternate. */
function assertPaired(turns: readonly ArrivedTurn[]): void {
  for (const [index, turn] of turns.entries()) {
    if (index > 0) assert.notEqual(turn.by, turns[index - 1]!.by, 'roles alternate');
    const calls = turn.parts.flatMap((part) => (part.kind === 'call' ? [part.id] : []));
    const answered = (turns[index + 1]?.parts ?? []).slice(0, calls.length);
    const ids = answered.map((part) => (part.kind === 'result' ? part.callId : undefined));
    assert.deepEqual(new Set(ids), new Set(calls), 'the next turn begins with a result for each call');
    assert.ok(index > 0 || turn.parts.every((part) => part.kind !== 'result'), 'results answer a turn before');
  }
}

function toolOf(tool: Json) {
  onlyMembers(tool, ['name', 'description', 'input_schema', 'strict', 'cache_control', 'type'], 'a tool');
  const { name, description, input_schema: schema } = tool;
  assert.match(text(name, 'name'), /^[a-zA-Z0-9_-]{1,128}$/);
  assert.equal(object(schema, 'input_schema')['type'], 'object');
  return { name: name as string, description: description as string, schema: schema as object };
}

function schemaOf(format: unknown): object | undefined {
  if (format === undefined) return undefined;
  const { type, schema } = object(format, 'format');
  assert.equal(type, 'json_schema');
  return object(schema, 'schema');
}
