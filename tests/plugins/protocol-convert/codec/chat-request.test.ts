/** Chat messages of clients: every form that a message may take is read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { decode, sealed } from './chat-harness.ts';

const user = { role: 'user', content: 'Hi' };
const turns = (...messages: readonly unknown[]) => decode({ messages }).prompt.turns;
const partsOf = (message: unknown) => turns(message)[0]!.parts;
const prompt = (body: JsonObject) => decode({ messages: [user], ...body }).prompt;
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
const pdf = Buffer.from('%PDF-1.7 and more of it').toString('base64');

test('pitfall 093: developer and system are the system, wherever they stand', () => {
  const read = turns({ role: 'developer', content: 'A' }, user, {
    role: 'system',
    content: [{ type: 'text', text: 'B' }],
    name: 'n',
  });
  assert.deepEqual(read, [
    { role: 'system', parts: [{ kind: 'text', text: 'A' }] },
    { role: 'user', parts: [{ kind: 'text', text: 'Hi' }] },
    { role: 'system', parts: [{ kind: 'text', text: 'B' }], name: 'n' },
  ]);
});

test('pitfall 193: an image is what its bytes are, whatever is declared', () => {
  const [part] = partsOf({
    role: 'user',
    content: [{ type: 'image_url', image_url: { url: `data:image/jpeg;base64,${png}`, detail: 'low' } }],
  });
  assert.deepEqual(part, {
    kind: 'image',
    source: { form: 'bytes', mediaType: 'image/png', base64: png },
    detail: 'low',
  });
});

test('pitfall 194: an address keeps its query and is an image all the same', () => {
  const [part] = partsOf({
    role: 'user',
    content: [{ type: 'image_url', image_url: { url: 'https://a.b/c.png?x=.txt' } }],
  });
  assert.deepEqual(part, {
    kind: 'image',
    source: { form: 'url', url: 'https://a.b/c.png?x=.txt', mediaType: 'image/png' },
  });
});

test('pitfall 195: data URLs in odd forms and bare base64 are read', () => {
  for (const url of [`DATA:image/png;charset=x;base64,${png}`, png]) {
    const [part] = partsOf({ role: 'user', content: [{ type: 'image_url', image_url: url }] });
    assert.deepEqual(part, { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } });
  }
});

test('files, sounds and films are read with their names and types', () => {
  const parts = partsOf({
    role: 'user',
    content: [
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { type: 'video_url', video_url: { url: 'https://a.b/c.mp4' } },
    ],
  });
  assert.deepEqual(parts, [
    { kind: 'document', source: { form: 'bytes', mediaType: 'application/pdf', base64: pdf }, name: 'a.pdf' },
    { kind: 'document', source: { form: 'file', id: 'file-1' } },
    { kind: 'audio', source: { form: 'bytes', mediaType: 'audio/mpeg', base64: 'AAAA' } },
    { kind: 'video', source: { form: 'url', url: 'https://a.b/c.mp4', mediaType: 'video/mp4' } },
  ]);
});

test('pitfall 100: an assistant message without content has calls alone', () => {
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
      { id: 'b', type: 'custom', custom: { name: 'g', input: 'raw' } },
    ],
  };
  assert.deepEqual(partsOf(message), [
    { kind: 'tool-call', id: 'a', name: 'f', input: '{"x":1}' },
    { kind: 'tool-call', id: 'b', name: 'g', input: 'raw', custom: true },
  ]);
  const result = turns(message, { role: 'tool', tool_call_id: 'b', content: 'ok' })[1]!.parts[0];
  assert.deepEqual(result, { kind: 'tool-result', callId: 'b', parts: [{ kind: 'text', text: 'ok' }], custom: true });
});

test('arguments that are an object, empty or absent become JSON text', () => {
  const input = (value: unknown) => {
    const [part] = partsOf({ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: value } }] });
    return (part as { input: string }).input;
  };
  assert.deepEqual([{ x: 1 }, '', undefined, null, '{x'].map(input), ['{"x":1}', '{}', '{}', '{}', '{x']);
});

test('pitfall 067: a tool result that is an object or a list of anything becomes its text, parts stay parts', () => {
  const result = (content: unknown) => {
    const [part] = partsOf({ role: 'tool', tool_call_id: 'a', content });
    return (part as { parts: unknown }).parts;
  };
  assert.deepEqual(result({ ok: true }), [{ kind: 'text', text: '{"ok":true}' }]);
  assert.deepEqual(result([1, { a: 2 }]), [{ kind: 'text', text: '[1,{"a":2}]' }]);
  assert.deepEqual(
    result([
      { type: 'text', text: 'a' },
      { type: 'point', x: 1 },
    ]),
    [
      { kind: 'text', text: 'a' },
      { kind: 'text', text: '{"type":"point","x":1}' },
    ],
  );
  assert.deepEqual(result(7), [{ kind: 'text', text: '7' }]);
  assert.deepEqual(result(null), []);
  assert.equal(
    (result([{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }]) as { kind: string }[])[0]!
      .kind,
    'image',
  );
});

test('pitfall 061: tool blocks of another protocol inside messages are calls and results', () => {
  const read = turns(
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'A' },
        { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }],
          is_error: true,
        },
        { type: 'text', text: 'B' },
      ],
    },
  );
  assert.deepEqual(read[0]!.parts[1], { kind: 'tool-call', id: 'a', name: 'f', input: '{"x":1}' });
  assert.deepEqual(read[1]!.parts, [
    {
      kind: 'tool-result',
      callId: 'a',
      parts: [{ kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } }],
      isError: true,
    },
    { kind: 'text', text: 'B' },
  ]);
});

test('the old functions and their results are tools, calls and results', () => {
  const { prompt: read } = decode({
    messages: [
      user,
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: '5' },
    ],
    functions: [{ name: 'f', description: 'd', parameters: { type: 'object' } }],
    function_call: { name: 'f' },
  });
  assert.deepEqual(read.tools, [{ kind: 'function', name: 'f', description: 'd', schema: { type: 'object' } }]);
  assert.deepEqual(read.toolChoice, { mode: 'required', names: ['f'] });
  assert.deepEqual(
    read.turns.slice(1).map(({ parts }) => parts[0]),
    [
      { kind: 'tool-call', id: '', name: 'f', input: '{}' },
      { kind: 'tool-result', callId: '', parts: [{ kind: 'text', text: '5' }], name: 'f' },
    ],
  );
});

test('reasoning comes back with the opaque state that this gateway sealed, foreign seals leave the words alone', () => {
  const own = { type: 'reasoning.text', index: 0, text: 'Hm', signature: sealed('SIG') };
  assert.deepEqual(partsOf({ role: 'assistant', content: 'A', reasoning_content: 'H m', reasoning_details: [own] }), [
    { kind: 'reasoning', text: 'Hm', opaqueState: { maker: 'maker', value: 'SIG' } },
    { kind: 'text', text: 'A' },
  ]);
  const hidden = { type: 'reasoning.encrypted', index: 0, data: sealed('ENC') };
  assert.deepEqual(partsOf({ role: 'assistant', content: 'A', reasoning_details: [hidden] })[0], {
    kind: 'reasoning',
    text: '',
    opaqueState: { maker: 'maker', value: 'ENC' },
    redacted: true,
  });
  assert.deepEqual(
    partsOf({
      role: 'assistant',
      content: 'A',
      reasoning_details: [
        { ...own, signature: 'foreign' },
        { type: 'reasoning.encrypted', data: 'foreign' },
      ],
    })[0],
    { kind: 'reasoning', text: 'Hm' },
  );
  for (const field of ['reasoning_content', 'reasoning'])
    assert.deepEqual(partsOf({ role: 'assistant', content: 'A', [field]: 'Hm' })[0], { kind: 'reasoning', text: 'Hm' });
});

test('a sealed thought signature on a call or on the text is its opaque state', () => {
  const extra_content = { google: { thought_signature: sealed('SIG') } };
  const opaqueState = { maker: 'maker', value: 'SIG' };
  const parts = partsOf({
    role: 'assistant',
    content: 'A',
    extra_content,
    tool_calls: [{ id: 'a', extra_content, function: { name: 'f', arguments: '{}' } }],
  });
  assert.deepEqual(parts, [
    { kind: 'text', text: 'A', opaqueState: opaqueState },
    { kind: 'tool-call', id: 'a', name: 'f', input: '{}', opaqueState: opaqueState },
  ]);
  const foreign = { google: { thought_signature: 'theirs' } };
  assert.deepEqual(partsOf({ role: 'assistant', content: 'A', extra_content: foreign }), [{ kind: 'text', text: 'A' }]);
});

test('marks to cache are read in both spellings, on parts, messages, results and tools', () => {
  const short = { cache_control: { type: 'ephemeral' } };
  const long = { prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } };
  assert.deepEqual(
    partsOf({
      role: 'user',
      content: [
        { type: 'text', text: 'A', ...short },
        { type: 'text', text: 'B', ...long },
      ],
    }).map((part) => (part as { cache?: string }).cache),
    ['short', 'long'],
  );
  assert.deepEqual(partsOf({ role: 'user', content: 'A', ...short })[0], { kind: 'text', text: 'A', cache: 'short' });
  assert.equal(
    (partsOf({ role: 'tool', tool_call_id: 'a', content: 'A', ...long })[0] as { cache?: string }).cache,
    'long',
  );
  assert.deepEqual(prompt({ tools: [{ type: 'function', function: { name: 'f' }, ...short }] }).tools, [
    { kind: 'function', name: 'f', cache: 'short' },
  ]);
});
