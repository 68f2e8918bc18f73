/** Converse as a vendor speaks it: reads requests strictly, and writes answers. */
import assert from 'node:assert/strict';
import type { Play } from '../../matrix/scenario.ts';
import { type Json, list, object, onlyMembers, pieces, text, toolName } from '../../matrix/vendors/pieces.ts';

// ---------------------------------------------------------------------------------------------------------- the request

export function checkRequest(json: Json): void {
  onlyMembers(
    json,
    ['messages', 'system', 'inferenceConfig', 'toolConfig', 'additionalModelRequestFields', 'outputConfig'],
    'the body',
  );
  for (const block of list(json['system'] ?? [], 'system')) onlyMembers(block, ['text', 'cachePoint'], 'system');
  onlyMembers(
    object(json['inferenceConfig'] ?? {}, 'inferenceConfig'),
    ['maxTokens', 'temperature', 'topP', 'stopSequences'],
    'inferenceConfig',
  );
  const tools = checkTools(json['toolConfig']);
  const messages = list(json['messages'], 'messages');
  let open: string[] = [];
  messages.forEach((message, index) => {
    onlyMembers(message, ['role', 'content'], 'a message');
    assert.equal(message['role'], index % 2 === 0 ? 'user' : 'assistant', 'roles take turns');
    const blocks = list(message['content'], 'content');
    assert.ok(blocks.length > 0);
    const results = blocks.flatMap((block) => ('toolResult' in block ? [checkResult(block)] : []));
    assert.deepEqual(results, open, 'each call is answered in the next message');
    open = blocks.flatMap((block) => checkBlock(block, tools));
  });
  assert.equal(messages.at(-1)!['role'], 'user');
}

function checkTools(config: unknown): ReadonlySet<string> {
  if (config === undefined) return new Set();
  const { tools, toolChoice, ...others } = object(config, 'toolConfig');
  assert.deepEqual(others, {});
  if (toolChoice !== undefined)
    assert.match(JSON.stringify(toolChoice), /^\{"(any|auto)":\{\}\}$|^\{"tool":\{"name":"\w+"\}\}$/);
  const names = list(tools, 'tools').map((tool) => {
    onlyMembers(tool, ['toolSpec', 'cachePoint'], 'a tool');
    const spec = object(tool['toolSpec'], 'toolSpec');
    onlyMembers(spec, ['name', 'description', 'inputSchema'], 'toolSpec');
    if (spec['description'] !== undefined) assert.ok(text(spec['description'], 'description').length > 0);
    assert.equal(object(object(spec['inputSchema'], 'inputSchema')['json'], 'json')['type'], 'object');
    assert.match(text(spec['name'], 'name'), toolName);
    return text(spec['name'], 'name');
  });
  assert.ok(names.length > 0);
  return new Set(names);
}

function checkResult({ toolResult }: Json): string {
  const { toolUseId, content, status, ...others } = object(toolResult, 'toolResult');
  assert.deepEqual(others, {});
  assert.ok(status === undefined || status === 'error' || status === 'success');
  for (const block of list(content, 'content')) onlyMembers(block, ['text', 'image', 'document', 'json'], 'a result');
  return text(toolUseId, 'toolUseId');
}

/** The id of a call. */
function checkBlock(block: Json, tools: ReadonlySet<string>): string[] {
  assert.equal(Object.keys(block).length, 1, 'a block is a union');
  onlyMembers(
    block,
    ['text', 'image', 'document', 'toolUse', 'toolResult', 'reasoningContent', 'cachePoint'],
    'a block',
  );
  if ('text' in block) assert.notEqual(text(block['text'], 'text').trim(), '');
  if ('image' in block) {
    const { format, source } = object(block['image'], 'image');
    assert.match(text(format, 'format'), /^(png|jpeg|gif|webp)$/);
    assert.match(text(object(source, 'source')['bytes'], 'bytes'), /^[A-Za-z0-9+/]+=*$/);
  }
  if (!('toolUse' in block)) return [];
  const { toolUseId, name, input, ...others } = object(block['toolUse'], 'toolUse');
  assert.deepEqual(others, {});
  object(input, 'input');
  assert.ok(tools.has(text(name, 'name')), 'calls are of declared tools');
  assert.match(text(toolUseId, 'toolUseId'), /^[a-zA-Z0-9_-]{1,64}$/);
  return [toolUseId as string];
}

// ----------------------------------------------------------------------------------------------------------- the answer

const stops = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  refusal: 'content_filtered',
};

export function whole({ reasoning, text: said, calls = [], meaning }: Play, usage: object): object {
  const content = [
    ...(reasoning === undefined ? [] : [{ reasoningContent: { reasoningText: reasoning } }]),
    ...(said === undefined ? [] : [{ text: said }]),
    ...calls.map(({ id, name, input }) => ({ toolUse: { toolUseId: id, name, input } })),
  ];
  const output = { message: { role: 'assistant', content } };
  return { output, stopReason: stops[meaning], usage, metrics: { latencyMs: 400 } };
}

/** The events of a stream by type. */
export function events({ reasoning, text: said, calls = [], meaning }: Play, usage: object): [string, object][] {
  let index = -1;
  const block = (deltas: object[], start?: object) => {
    index += 1;
    const own = { contentBlockIndex: index };
    return [
      ...(start === undefined ? [] : [event('contentBlockStart', { ...own, start })]),
      ...deltas.map((delta) => event('contentBlockDelta', { ...own, delta, p: 'abcdefg' })),
      event('contentBlockStop', { ...own, p: 'abc' }),
    ];
  };
  return [
    event('messageStart', { role: 'assistant', p: 'ab' }),
    ...(reasoning === undefined
      ? []
      : block([
          ...pieces(reasoning.text).map((piece) => ({ reasoningContent: { text: piece } })),
          { reasoningContent: { signature: reasoning.signature } },
        ])),
    ...(said === undefined ? [] : block(pieces(said).map((piece) => ({ text: piece })))),
    ...calls.flatMap(({ id, name, input }) =>
      block(
        pieces(JSON.stringify(input)).map((piece) => ({ toolUse: { input: piece } })),
        { toolUse: { toolUseId: id, name } },
      ),
    ),
    event('messageStop', { stopReason: stops[meaning] }),
    event('metadata', { usage, metrics: { latencyMs: 400 } }),
  ];
}

function event(type: string, body: object): [string, object] {
  return [type, body];
}
