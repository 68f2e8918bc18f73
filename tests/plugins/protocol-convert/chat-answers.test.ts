/** Answers of chat upstreams that repeat themselves, leave members empty or send them in pieces, as each client reads them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RelayRequest, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const tools = [{ name: 'get' }, { name: 'get_weather' }, { name: 'look_up' }];
const parameters = { type: 'object', properties: {} };

/** The same request in the words of three other protocols, for a chat upstream. */
function requestFor(isStream: boolean): readonly RelayRequest[] {
  const target = { protocol: 'chat' };
  const user = { role: 'user', content: 'x' };
  return [
    {
      path: '/v1/messages',
      body: {
        ...{ model: 'm', max_tokens: 9, messages: [user], stream: isStream },
        tools: tools.map(({ name }) => ({ name, input_schema: parameters })),
      },
      target,
    },
    {
      path: '/v1/responses',
      body: {
        ...{ model: 'm', input: 'x', stream: isStream },
        tools: tools.map(({ name }) => ({ type: 'function', name, parameters })),
      },
      target,
    },
    {
      path: `/v1beta/models/m:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      body: {
        contents: [{ role: 'user', parts: [{ text: 'x' }] }],
        tools: [{ functionDeclarations: tools }],
      },
      target,
    },
  ];
}

const sse = (frames: readonly object[]) =>
  `${frames.map((frame) => `data: ${JSON.stringify({ id: 'c', ...frame })}\n\n`).join('')}data: [DONE]\n\n`;
const delta = (members: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: members, finish_reason: finish }],
});
const whole = (message: object, finish: string) =>
  JSON.stringify({ id: 'c', choices: [{ index: 0, message, finish_reason: finish }] });

async function bodies(answer: { readonly message?: object; readonly deltas?: readonly object[] }, finish: string) {
  const read: { text: string; report: { usage: object } }[] = [];
  for (const isStream of [true, false]) {
    for (const one of requestFor(isStream)) {
      const upstream = isStream
        ? streamAnswer([sse([...answer.deltas!.map((members) => delta(members)), delta({}, finish)])])
        : wholeAnswer(whole(answer.message!, finish));
      const relayed = await relay(one, upstream);
      read.push({ text: (await readBody(relayed.answer.body)).toString(), report: relayed.report! });
    }
  }
  return read;
}

/** Calls as each client finds them in a whole answer, or in the events of a stream. */
function callsIn(text: string): { name: string; input: unknown }[] {
  const payloads = text.includes('data: ')
    ? text
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>)
    : [JSON.parse(text) as Record<string, unknown>];
  const calls: { name: string; input: string }[] = [];
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) walk(one);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const one = value as Record<string, unknown>;
    if (one['type'] === 'tool_use') calls.push({ name: String(one['name']), input: JSON.stringify(one['input']) });
    else if (one['type'] === 'input_json_delta') calls.at(-1)!.input = append(calls.at(-1)!.input, one['partial_json']);
    else if (one['type'] === 'function_call' && one['status'] === 'completed')
      calls.push({ name: String(one['name']), input: String(one['arguments']) });
    else if (one['functionCall'] !== undefined) {
      const { name, args } = one['functionCall'] as { name: string; args: unknown };
      calls.push({ name, input: JSON.stringify(args) });
    }
    for (const [member, inner] of Object.entries(one)) if (member !== 'tools') walk(inner);
  };
  // The last event of a responses stream repeats its items.
  for (const payload of payloads) if (payload['type'] !== 'response.completed') walk(payload);
  const unique = calls.filter((call, at) => calls.findIndex((other) => other.name === call.name) === at);
  return unique.map(({ name, input }) => ({ name, input: JSON.parse(input) }));
}

function append(before: string, piece: unknown): string {
  return (before === '{}' ? '' : before) + String(piece);
}

test('a call beside an empty member of the other kind is read by its type, or by the member that is filled', async () => {
  const call = { name: 'get_weather', arguments: '{"city":"Bern"}' };
  const empties = [{ name: '', input: '' }, {}, { name: '' }, null];
  for (const custom of empties) {
    for (const type of ['function', undefined, '']) {
      const tool = { index: 0, id: 'call_1', type, custom, function: call };
      const deltas = [
        { tool_calls: [{ ...tool, function: { name: call.name, arguments: '' } }] },
        { tool_calls: [{ index: 0, custom, function: { arguments: '{"city":' } }] },
        { tool_calls: [{ index: 0, custom, function: { name: '', arguments: '"Bern"}' } }] },
      ];
      for (const { text } of await bodies({ message: { content: '', tool_calls: [tool] }, deltas }, 'tool_calls'))
        assert.deepEqual(callsIn(text), [{ name: 'get_weather', input: { city: 'Bern' } }], text);
    }
  }
});

test('arguments that are null are an empty object, whole, at once and in pieces', async () => {
  for (const pieces of [['null'], ['nu', 'll'], ['', ' null '], ['null', '']]) {
    const message = {
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look_up', arguments: pieces.join('') } }],
    };
    const deltas = [
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '' } }] },
      ...pieces.map((piece) => ({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    ];
    for (const { text } of await bodies({ message, deltas }, 'tool_calls'))
      assert.deepEqual(callsIn(text), [{ name: 'look_up', input: {} }], text);
  }
});

test('a name that comes in pieces is joined, and one that is repeated is not', async () => {
  const start = { index: 0, id: 'call_1', type: 'function' };
  const pieces: readonly (readonly [object, ...object[]])[] = [
    [
      { ...start, function: { name: 'get_' } },
      { index: 0, function: { name: 'weather' } },
    ],
    [
      { ...start, function: { name: 'get' } },
      { index: 0, function: { name: '_weather', arguments: '' } },
    ],
    [
      { ...start, function: { name: 'get_' } },
      { index: 0, id: 'call_1', function: { name: 'weather' } },
    ],
    [
      { ...start, function: { name: 'get' } },
      { index: 0, function: { name: '_wea' } },
      { index: 0, function: { name: 'ther' } },
    ],
    [
      { ...start, function: { name: 'get_weather' } },
      { index: 0, function: { name: 'get_weather' } },
    ],
  ];
  for (const parts of pieces) {
    const deltas = [...parts, { index: 0, function: { arguments: '{"city":"Bern"}' } }].map((one) => ({
      tool_calls: [one],
    }));
    for (const one of requestFor(true)) {
      const { answer } = await relay(
        one,
        streamAnswer([sse([...deltas.map((d) => delta(d)), delta({}, 'tool_calls')])]),
      );
      const text = (await readBody(answer.body)).toString();
      assert.deepEqual(callsIn(text), [{ name: 'get_weather', input: { city: 'Bern' } }], text);
    }
  }
});

test('two calls with names that resemble pieces of one stay two', async () => {
  const deltas = [
    { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'get' } }] },
    { tool_calls: [{ index: 1, id: 'call_2', type: 'function', function: { name: 'look_up' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] },
    { tool_calls: [{ index: 1, function: { arguments: '{"b":2}' } }] },
  ];
  for (const one of requestFor(true)) {
    const { answer } = await relay(one, streamAnswer([sse([...deltas.map((d) => delta(d)), delta({}, 'tool_calls')])]));
    const text = (await readBody(answer.body)).toString();
    for (const name of ['get', 'look_up']) assert.ok(text.includes(`"${name}"`), name);
    assert.ok(/\{\\?"a\\?":1\}/.test(text) && /\{\\?"b\\?":2\}/.test(text), text);
  }
});

/** The words of an answer as its client reads them: the deltas of a stream, or the texts of a body. */
function wordsIn(text: string): string {
  const reported = text.includes('data: ') ? text.slice(0, text.lastIndexOf('_text.done')) || text : text;
  return [...reported.matchAll(/"(?:text|delta)":"([^"]*)"/g)].map((match) => match[1]).join('');
}

const said = 'Zebras are striped animals.';
const sound = (transcript: string) => ({ audio: { id: 'a', data: 'AAAA', transcript } });

test('words that come as content and as a transcript, in any order, are sent and estimated once', async () => {
  const half = said.slice(0, 11);
  const rest = said.slice(11);
  const thirds = said.match(/.{1,3}/g)!;
  const streams: object[][] = [
    [
      { content: half, ...sound(half) },
      { content: rest, ...sound(rest) },
    ],
    [{ content: half }, sound(half), { content: rest }, sound(rest)],
    [{ content: half }, { content: rest, ...sound(half) }, sound(rest)],
    [{ content: said }, sound(said)],
    [sound(said), { content: said }],
    [sound(half), { content: half }, sound(rest), { content: rest }],
    [sound(half), { audio: { data: 'AAAA' } }, sound(rest), { content: half }, { content: rest }],
    [sound(half), { content: said }, sound(rest)],
    [...thirds.map((piece) => sound(piece)), ...thirds.map((piece) => ({ content: piece }))],
  ];
  for (const deltas of streams) {
    for (const { text, report } of await bodies({ message: { ...sound(said), content: said }, deltas }, 'stop')) {
      assert.equal(wordsIn(text), said, text);
      assert.ok((report.usage as { output: number }).output <= Math.max(4, Math.ceil(said.length / 3)), text);
    }
  }
  const only = await bodies({ message: { content: null, ...sound(said) }, deltas: [sound(said)] }, 'stop');
  for (const [index, { text, report }] of only.entries()) {
    // Generate-content has a place for the sound itself, and none for its transcript.
    if (index % 3 !== 2) assert.ok(text.includes('Zebras'), text);
    assert.equal((report.usage as { output: number }).output, Math.ceil(said.length / 3));
  }
});

test('a transcript that only begins like the content is sent as well, whole', async () => {
  const other = 'Zebras, they are striped.';
  const streams = [
    [{ content: said }, sound(other.slice(0, 6)), sound(other.slice(6))],
    [sound(said), { content: other.slice(0, 6) }, { content: other.slice(6) }],
  ];
  for (const deltas of streams) {
    const texts = await bodies({ message: { content: said, ...sound(other) }, deltas }, 'stop');
    // Messages and responses, streamed and whole.
    for (const index of [0, 1, 3, 4]) assert.equal(wordsIn(texts[index]!.text), said + other, texts[index]!.text);
  }
});

test('a chat client gets both members of an audio answer, also where its stream is made of a whole answer and back', async () => {
  const body = (stream: boolean) => ({ model: 'm', stream, messages: [{ role: 'user', content: 'x' }] });
  const both = { content: said, ...sound(said) };
  for (const streams of ['only', 'never'] as const) {
    const request = { path: '/v1/chat/completions', body: body(streams === 'never'), target: { traits: { streams } } };
    const upstream =
      streams === 'never'
        ? wholeAnswer(whole(both, 'stop'))
        : streamAnswer([sse([delta(sound(said)), delta({ content: said }), delta({}, 'stop')])]);
    const relayed = await relay(request, upstream);
    const text = (await readBody(relayed.answer.body)).toString();
    assert.ok(text.includes(`"content":"${said}"`) && text.includes(`"transcript":"${said}"`), text);
    assert.equal((relayed.report!.usage as { output: number }).output, Math.ceil(said.length / 3));
  }
});
