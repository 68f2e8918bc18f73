import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Part, ToolChoice, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { lostSignature } from '../../../../plugins/protocol-convert/encoding/sealed-text.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { encodeSlot } from '../../../../plugins/protocol-convert/protocols/gemini/signatures.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { type Body, decode, encode, maker, openSeal, seal, turnsOf, user } from './gemini-harness.ts';

const model = (...parts: Part[]): Turn => ({ role: 'assistant', parts });
const results = (...parts: Part[]): Turn => ({ role: 'user', parts });
const call = (id: string, name = 'f', more: object = {}): Part => ({
  kind: 'tool-call',
  id,
  name,
  input: '{}',
  ...more,
});
const result = (callId: string, text = 'ok', more: object = {}): Part => ({
  kind: 'tool-result',
  callId,
  parts: text === '' ? [] : [{ kind: 'text', text }],
  ...more,
});
const tool = (name: string, schema = {}) => ({ kind: 'function', name, schema }) as const;
const png = 'iVBORw0KGgoAAAANSUhEUg==';
const image = { kind: 'image', source: { form: 'bytes', mediaType: 'image/png', base64: png } } as const;

function refusal(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
  return assert.fail('it was taken');
}

test('the official, the snake-case and the flat shape of a request say the same', () => {
  const official = {
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: png } }] }],
    systemInstruction: { parts: [{ text: 's' }] },
    tools: [
      {
        functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: { a_b: { type: 'STRING' } } } }],
      },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: {
      temperature: 1,
      topP: 0.5,
      topK: 3,
      maxOutputTokens: 9,
      stopSequences: ['x'],
      candidateCount: 2,
    },
  };
  const snake = {
    contents: [{ role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: png } }] }],
    system_instruction: { parts: [{ text: 's' }] },
    tools: [
      {
        function_declarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: { a_b: { type: 'STRING' } } } }],
      },
    ],
    tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['f'] } },
    temperature: 1,
    top_p: 0.5,
    top_k: 3,
    max_output_tokens: 9,
    stop_sequences: ['x'],
    candidate_count: 2,
    stream: true,
    model: 'm',
  };
  const { prompt, dropped } = decode(official);
  assert.deepEqual(decode(snake), { prompt, dropped });
  assert.deepEqual(dropped, []);
  assert.deepEqual(prompt.turns, [
    { role: 'system', parts: [{ kind: 'text', text: 's' }] },
    { role: 'user', parts: [image] },
  ]);
  assert.deepEqual(prompt.tools, [
    { kind: 'function', name: 'f', schema: { type: 'object', properties: { a_b: { type: 'string' } } } },
  ]);
  assert.deepEqual(prompt.toolChoice, { mode: 'required', names: ['f'] });
  const { temperature, topP, topK, maxOutputTokens, stop, choices } = prompt;
  assert.deepEqual([temperature, topP, topK, maxOutputTokens, stop, choices], [1, 0.5, 3, 9, ['x'], 2]);
});

test('faults and dropped parameters name the field as the client wrote it', () => {
  const contents = [{ parts: [{ text: 'x' }] }];
  const wrong = { contents, generationConfig: { topK: 'many' } };
  assert.equal(refusal(() => decode(wrong)).field, 'generationConfig.topK');
  assert.equal(refusal(() => decode({ contents, top_k: 'many' })).field, 'top_k');
  assert.equal(refusal(() => decode({ contents: [{ parts: [{ text: 1 }] }] })).field, 'contents[0].parts[0].text');
  assert.equal(refusal(() => decode({ contents: [{ role: 'x', parts: [] }] })).field, 'contents[0].role');
  assert.equal(refusal(() => decode({ contents: [] })).field, 'contents');
  const hints = { contents, safety_settings: [{ category: 'a', threshold: 'b' }], labels: { a: 'b' }, new_thing: 1 };
  assert.deepEqual(decode(hints).dropped, ['safety_settings', 'labels', 'new_thing']);
});

test('pitfall 182: null and empty members ask for nothing', () => {
  const contents = [{ parts: [{ text: 'x', thoughtSignature: null }] }];
  const nothing = {
    generationConfig: { temperature: null, mediaResolution: 'MEDIA_RESOLUTION_UNSPECIFIED' },
    tools: [],
    safetySettings: [],
  };
  const { prompt, dropped } = decode({ contents, ...nothing, labels: {}, cachedContent: null });
  assert.deepEqual([prompt, dropped], [{ turns: [user('x')], tools: [] }, []]);
});

test('turns without a role, and turns of the role "function", are turns of the user', () => {
  const turns = turnsOf(
    { parts: [{ text: 'a' }] },
    { parts: [{ functionCall: { name: 'f' } }] },
    { role: 'function', parts: [{ functionResponse: { name: 'f', response: {} } }] },
    { role: 'model', parts: [{ text: 'b' }] },
  );
  assert.deepEqual(
    turns.map((turn) => turn.role),
    ['user', 'assistant', 'user', 'assistant'],
  );
});

test('pitfall 050: calls without ids get the same ones every time, and results find them by id, else by name and order', () => {
  const contents = [
    { role: 'user', parts: [{ text: 'x' }] },
    {
      role: 'model',
      parts: [
        { functionCall: { name: 'f', args: { n: 1 } } },
        { functionCall: { name: 'f', args: { n: 2 } } },
        { functionCall: { name: 'g', id: 'given' } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'given', name: 'g', response: { output: 'G' } } },
        { functionResponse: { name: 'f', response: { output: '1' } } },
        { functionResponse: { name: 'f', response: { output: '2' } } },
      ],
    },
  ];
  const [, calls, answers] = turnsOf(...contents);
  const ids = calls!.parts.map((part) => (part.kind === 'tool-call' ? part.id : ''));
  assert.equal(new Set(ids).size, 3);
  assert.equal(ids[2], 'given');
  assert.deepEqual(
    answers!.parts.map((part) => (part.kind === 'tool-result' ? part.callId : '')),
    [ids[2], ids[0], ids[1]],
  );
  assert.deepEqual(turnsOf(...contents), turnsOf(...contents));
});

test('a result is what the function put out, an error, or the object itself', () => {
  const read = (response: unknown) => {
    const [turn] = turnsOf({ parts: [{ functionResponse: { name: 'f', response } }] });
    const part = turn!.parts[0]!;
    assert.ok(part.kind === 'tool-result');
    return [part.parts.map((one) => (one.kind === 'text' ? one.text : one.kind)).join(), part.isError];
  };
  assert.deepEqual(read({ output: 'a' }), ['a', undefined]);
  assert.deepEqual(read({ result: { b: 1 } }), ['{"b":1}', undefined]);
  assert.deepEqual(read({ error: 'bad' }), ['bad', true]);
  assert.deepEqual(read({ error: { code: 1 } }), ['{"code":1}', true]);
  assert.deepEqual(read({ temperature: 3, unit: 'C' }), ['{"temperature":3,"unit":"C"}', undefined]);
  assert.deepEqual(read(undefined), ['', undefined]);
  const parts = [{ inlineData: { mimeType: 'image/png', data: png } }];
  const [turn] = turnsOf({ parts: [{ functionResponse: { name: 'f', response: { output: 'a' }, parts } }] });
  const shown = turn!.parts[0]!;
  assert.ok(shown.kind === 'tool-result');
  assert.deepEqual(shown.parts[1], image);
});

test('pitfall 193, 199: media are of the kind that their bytes tell, in any alphabet of base64', () => {
  const jpegNamedPng = { mimeType: 'image/jpeg', data: png };
  const wav = { mimeType: 'audio/x-wav', data: Buffer.from('RIFF0000WAVEfmt ').toString('base64url') };
  const [turn] = turnsOf({ parts: [{ inlineData: jpegNamedPng }, { inlineData: wav }] });
  assert.deepEqual(turn!.parts[0], image);
  const sound = turn!.parts[1]!;
  assert.ok(sound.kind === 'audio' && sound.source.form === 'bytes');
  assert.equal(sound.source.mediaType, 'audio/wav');
  const files = turnsOf({
    parts: [
      { fileData: { fileUri: 'https://a.example/x.pdf?y=z' } },
      { fileData: { fileUri: 'gs://b/c', mimeType: 'video/mp4' } },
    ],
  });
  assert.deepEqual(files[0]!.parts, [
    { kind: 'document', source: { form: 'url', url: 'https://a.example/x.pdf?y=z', mediaType: 'application/pdf' } },
    { kind: 'video', source: { form: 'file', id: 'gs://b/c', mediaType: 'video/mp4' } },
  ]);
});

test('pitfall 134: a level counts more than a budget; 0 is off and -1 is as the model likes', () => {
  const read = (thinkingConfig: object) =>
    decode({ contents: [{ parts: [{ text: 'x' }] }], generationConfig: { thinkingConfig } }).prompt.reasoning;
  assert.deepEqual(read({ thinkingLevel: 'HIGH', thinkingBudget: 5 }), { visible: false, effort: 'high' });
  assert.deepEqual(read({ thinkingBudget: 0, includeThoughts: true }), { visible: true, effort: 'none' });
  assert.deepEqual(read({ thinkingBudget: -1 }), { visible: false });
  assert.deepEqual(read({ thinkingBudget: 2000 }), { visible: false, budgetTokens: 2000 });
  assert.equal(refusal(() => read({ thinkingLevel: 'lots' })).field, 'generationConfig.thinkingConfig.thinkingLevel');
});

test('tools and stores that only the vendor has are refused, or left out by name where other tools remain', () => {
  const contents = [{ parts: [{ text: 'x' }] }];
  assert.equal(refusal(() => decode({ contents, cachedContent: 'cachedContents/1' })).field, 'cachedContent');
  const foreign = refusal(() => decode({ contents, tools: [{ googleMaps: {} }] }));
  assert.deepEqual(
    [foreign.kind, foreign.field, foreign.code],
    ['invalid_request', 'tools[0].googleMaps', 'unsupported_by_model'],
  );
  const mixed = decode({
    contents,
    tools: [{ googleMaps: {} }, { googleSearch: {} }, { urlContext: {}, codeExecution: {} }],
  });
  assert.deepEqual(mixed.dropped, ['tools[0].googleMaps']);
  assert.deepEqual(
    mixed.prompt.tools.map((one) => (one.kind === 'hosted' ? one.tool : one.name)),
    ['web_search', 'web_fetch', 'code_execution'],
  );
  assert.equal(
    refusal(() => decode({ contents, generationConfig: { responseMimeType: 'text/x.enum' } })).kind,
    'invalid_request',
  );
});

test('structured output is read from either kind of schema', () => {
  const read = (generationConfig: object) =>
    decode({ contents: [{ parts: [{ text: 'x' }] }], generationConfig }).prompt.output;
  const responseMimeType = 'application/json';
  assert.deepEqual(read({ responseMimeType }), { form: 'json' });
  const schema = { type: 'object', properties: { a: { type: ['string', 'null'] } } };
  assert.deepEqual(read({ responseMimeType, responseJsonSchema: schema }), { form: 'schema', name: undefined, schema });
  const openApi = { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } };
  assert.deepEqual(read({ responseMimeType, responseSchema: openApi }), { form: 'schema', name: undefined, schema });
});

test('pitfall 124: the text of thoughts in a history is dropped, and a sealed signature is kept on its part', () => {
  const own = encodeSlot([{ kind: 'own', content: seal('S') }]);
  const [turn] = turnsOf({
    role: 'model',
    parts: [
      { text: 'hm', thought: true },
      { text: 'a', thoughtSignature: own },
      { functionCall: { name: 'f', id: 'i' }, thoughtSignature: 'vendors+own' },
    ],
  });
  assert.deepEqual(turn!.parts, [
    { kind: 'reasoning', text: 'hm' },
    { kind: 'text', text: 'a', opaqueState: { maker, value: 'S' } },
    { kind: 'tool-call', id: 'i', name: 'f', input: '{}' },
  ]);
  assert.deepEqual(encode({ turns: [user('x'), turn!] }).body.contents[1].parts[0], {
    text: 'a',
    thoughtSignature: 'S',
  });
});

test('a relayed request goes without the gateway’s own slots', () => {
  const slot = encodeSlot([{ kind: 'reasoning', content: seal('S') }]);
  assert.ok(slot.startsWith(geminiCodec.sealMark!));
  const parts = [
    { text: 'a', thoughtSignature: slot },
    { functionCall: { name: 'f' }, thought_signature: slot },
    { text: '', thoughtSignature: slot },
    { text: 'b', thoughtSignature: 'vendors' },
  ];
  const relayed = geminiCodec.withoutSeals({ contents: [{ role: 'model', parts }], other: 1 }, openSeal);
  assert.deepEqual(relayed, {
    contents: [
      {
        role: 'model',
        parts: [
          { text: 'a' },
          { functionCall: { name: 'f' }, thought_signature: lostSignature },
          { text: 'b', thoughtSignature: 'vendors' },
        ],
      },
    ],
    other: 1,
  });
});

test('pitfall 055, 056, 057, 059, 060: all results of a step stand in one content, named, in call order, none missing', () => {
  const { body } = encode({
    turns: [
      user('x'),
      model(call('1', 'f'), call('2', 'g'), call('3', 'h')),
      results(result('3', 'third')),
      results(result('1', 'old'), result('1', 'first'), result('orphan')),
    ],
  });
  const [, , answer] = body.contents;
  assert.deepEqual(
    answer.parts.map((part: Body) => [
      part.functionResponse.id,
      part.functionResponse.name,
      part.functionResponse.response,
    ]),
    [
      ['1', 'f', { output: 'first' }],
      ['2', 'g', { output: '(no result)' }],
      ['3', 'h', { output: 'third' }],
    ],
  );
});

test('pitfall 051: ids are not sent to models that do not know them', () => {
  const { body } = encode(
    { turns: [user('x'), model(call('1')), results(result('1'))] },
    { traits: { tool_ids: 'none' } },
  );
  assert.deepEqual(body.contents[1].parts[0].functionCall, { name: 'f', args: {} });
  assert.deepEqual(body.contents[2].parts[0].functionResponse, { name: 'f', response: { output: 'ok' } });
});

test('pitfall 065: what a result shows stands inside it, or beside all results where the model takes none there', () => {
  const turns = [
    user('x'),
    model(call('1'), call('2')),
    results(result('1', 'a', { parts: [image, { kind: 'text', text: 'a' }] }), result('2'), {
      kind: 'text',
      text: 'go on',
    }),
  ];
  const inlineData = { mimeType: 'image/png', data: png };
  const inside = encode({ turns }).body.contents[2].parts;
  assert.deepEqual(inside[0].functionResponse.parts, [{ inlineData }]);
  assert.deepEqual(inside[0].functionResponse.response, { output: 'a' });
  const beside = encode({ turns }, { traits: { tool_result_media: false } }).body.contents[2].parts;
  assert.deepEqual(beside.slice(2), [{ inlineData }, { text: 'go on' }]);
  assert.equal(beside[0].functionResponse.parts, undefined);
});

test('pitfall 066, 067, 068: results are objects, and errors say so', () => {
  const words = (text: string, more: object = {}) =>
    encode({ turns: [user('x'), model(call('1')), results(result('1', text, more))] }).body.contents[2].parts[0]
      .functionResponse.response;
  assert.deepEqual(words('{"a":1}'), { a: 1 });
  assert.deepEqual(words('[1]'), { output: '[1]' });
  assert.deepEqual(words('{"a":'), { output: '{"a":' });
  assert.deepEqual(words('bad', { isError: true }), { error: 'bad' });
  assert.deepEqual(words(''), { output: '(no output)' });
});

test('pitfall 035, 036, 037: arguments are an object, whatever the model wrote', () => {
  const args = (input: string, more: object = {}) =>
    encode({ turns: [user('x'), model({ kind: 'tool-call', id: '1', name: 'f', input, ...more })] }).body.contents[1]
      .parts[0].functionCall.args;
  assert.deepEqual(args('{"a":1}'), { a: 1 });
  assert.deepEqual(args(''), {});
  assert.deepEqual(args('{"a"'), { _raw: '{"a"' });
  assert.deepEqual(args('"abc"'), { value: 'abc' });
  assert.deepEqual(args('*** patch', { custom: true }), { input: '*** patch' });
});

test('pitfall 114, 119, 120: the first call of each step is signed by its maker, or says that its signature was lost', () => {
  const foreign = { opaqueState: { maker: 'other', value: 'F' } };
  const turns = [
    user('x'),
    model(call('1', 'f', { opaqueState: { maker, value: 'S' } }), call('2')),
    results(result('1'), result('2')),
    model(call('3', 'f', foreign), call('4')),
    results(result('3'), result('4')),
  ];
  const signatures = (body: Body) =>
    body.contents
      .flatMap((content: Body) => content.parts)
      .filter((part: Body) => part.functionCall)
      .map((part: Body) => part.thoughtSignature);
  assert.deepEqual(signatures(encode({ turns }).body), ['S', undefined, lostSignature, undefined]);
  assert.deepEqual(signatures(encode({ turns }, { traits: { signatures: false } }).body), [
    'S',
    undefined,
    undefined,
    undefined,
  ]);
});

test('a signature that reached its client as reasoning goes back on the part it belongs to', () => {
  const thought = { kind: 'reasoning', text: 'hm', opaqueState: { maker, value: 'S' } } as const;
  const text: Part = { kind: 'text', text: 'a' };
  const parts = (...turn: Part[]) => encode({ turns: [user('x'), model(...turn)] }).body.contents[1]?.parts;
  assert.deepEqual(parts(thought, text), [{ text: 'a', thoughtSignature: 'S' }]);
  assert.deepEqual(parts(thought, call('1'))[0].thoughtSignature, 'S');
  assert.deepEqual(parts(call('1'), thought)[0].thoughtSignature, 'S');
  assert.deepEqual(parts(text, thought), [{ text: 'a' }, { text: '', thoughtSignature: 'S' }]);
  assert.equal(parts({ kind: 'reasoning', text: 'hm' }), undefined);
  assert.deepEqual(parts({ kind: 'text', text: '', opaqueState: { maker, value: 'S' } }), [
    { text: '', thoughtSignature: 'S' },
  ]);
});

test('pitfall 093, 094: what the system says first is the instruction, later words stand marked among the user’s', () => {
  const system = (text: string): Turn => ({ role: 'system', parts: [{ kind: 'text', text }] });
  const { body } = encode({ turns: [system('a'), system('b'), user('x'), system('c')] });
  assert.deepEqual(body.systemInstruction, { parts: [{ text: 'a' }, { text: 'b' }] });
  assert.deepEqual(body.contents, [
    { role: 'user', parts: [{ text: 'x' }, { text: '<system-reminder>\nc\n</system-reminder>' }] },
  ]);
});

test('pitfall 096, 097, 098: turns alternate, begin with the user, and hold no empty text', () => {
  const text = (words: string): Part => ({ kind: 'text', text: words });
  const { body } = encode({ turns: [model(text('a')), user(''), user('b'), user('c')] });
  assert.deepEqual(body.contents, [
    { role: 'user', parts: [{ text: '' }] },
    { role: 'model', parts: [{ text: 'a' }] },
    { role: 'user', parts: [{ text: 'b' }, { text: 'c' }] },
  ]);
});

test('pitfall 102: names, phases and marks are dropped by name, as the protocol has no place for them', () => {
  const named: Turn = {
    role: 'user',
    name: 'ann',
    phase: 'final_answer',
    parts: [{ kind: 'text', text: 'a', cache: 'short' }],
  };
  const { dropped } = encode({
    turns: [named],
    cacheKey: 'k',
    user: 'u',
    verbosity: 'low',
    logitBias: { 1: 1 },
    parallelTools: false,
    tools: [tool('f')],
  });
  assert.deepEqual(
    new Set(dropped),
    new Set(['names', 'phase', 'cacheMarks', 'cacheKey', 'user', 'verbosity', 'logitBias', 'parallelTools']),
  );
});

test('pitfall 078, 079, 082: schemas go whole where JSON Schema is taken, else as the subset', () => {
  const schema = {
    $schema: 'x',
    type: 'object',
    properties: { a: { const: 1 } },
    additionalProperties: false,
    required: ['a', 'b'],
  };
  const whole = encode({ tools: [tool('f', schema)] }).body.tools[0].functionDeclarations[0].parametersJsonSchema;
  assert.deepEqual([whole.properties.a, whole.additionalProperties], [{ enum: [1] }, false]);
  const traits = { json_schema_tools: false };
  const { tools } = encode({ tools: [tool('f', schema), tool('none')] }, { traits }).body;
  const [subset, none] = tools[0].functionDeclarations;
  assert.equal(subset.parameters.type, 'object');
  assert.deepEqual(subset.parameters.required, ['a']);
  assert.equal(JSON.stringify(subset.parameters).includes('additionalProperties'), false);
  assert.equal(none.parameters, undefined);
});

test('pitfall 053, 054, 074: names are legal and find their way back, twins are declared once', () => {
  const tools = [
    { ...tool('a b'), namespace: 'ns' },
    tool('f'),
    tool('f'),
    { kind: 'custom', name: 'patch', grammar: { syntax: 'lark', definition: 'G' } } as const,
  ];
  const { body, responseMapping: way } = encode({
    tools,
    turns: [user('x'), model(call('1', 'a b', { namespace: 'ns' })), results(result('1'))],
  });
  const declared = body.tools[0].functionDeclarations;
  assert.equal(declared.length, 3);
  assert.match(declared[0].name, /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/);
  assert.deepEqual(way.names.get(declared[0].name), { name: 'a b', namespace: 'ns' });
  assert.equal(body.contents[1].parts[0].functionCall.name, declared[0].name);
  assert.equal(body.contents[2].parts[0].functionResponse.name, declared[0].name);
  assert.deepEqual([...way.wrapped], ['patch']);
  assert.match(declared[2].description, /lark grammar:\nG/);
  assert.deepEqual(declared[2].parametersJsonSchema.required, ['input']);
});

test('pitfall 070, 071: no tools, no list and no choice', () => {
  const { body } = encode({ tools: [], toolChoice: { mode: 'required' } });
  assert.deepEqual([body.tools, body.toolConfig], [undefined, undefined]);
});

test('pitfall 072, 073: a choice of none, of any and of named functions is encoded', () => {
  const tools = [tool('f'), tool('g')];
  const config = (toolChoice: ToolChoice, traits = {}) =>
    encode({ tools, toolChoice }, { traits }).body.toolConfig?.functionCallingConfig;
  assert.deepEqual(config({ mode: 'none' }), { mode: 'NONE' });
  assert.deepEqual(config({ mode: 'auto' }), { mode: 'AUTO' });
  assert.deepEqual(config({ mode: 'auto', names: ['f'] }), { mode: 'VALIDATED', allowedFunctionNames: ['f'] });
  assert.deepEqual(config({ mode: 'required' }), { mode: 'ANY' });
  assert.deepEqual(config({ mode: 'required', names: ['g', 'unknown'] }), { mode: 'ANY', allowedFunctionNames: ['g'] });
  assert.deepEqual(encode({ tools, toolChoice: { mode: 'required' } }, { traits: { forced_tools: false } }).dropped, [
    'toolConfig.functionCallingConfig',
  ]);
});

test('pitfall 222: the vendor’s own tools go beside functions where the model takes both', () => {
  const search = { kind: 'hosted', tool: 'web_search', name: 'web_search_20250305', options: { maxUses: 3 } } as const;
  const both = encode({ tools: [tool('f'), search] });
  assert.deepEqual(both.body.tools[1], { googleSearch: {} });
  assert.equal(both.body.toolConfig.includeServerSideToolInvocations, true);
  assert.deepEqual(both.dropped, ['tools (web_search_20250305: maxUses)']);
  const one = encode({ tools: [tool('f'), search] }, { traits: { hosted_with_functions: false } });
  assert.equal(one.body.tools.length, 1);
  assert.deepEqual(one.dropped, ['tools (web_search_20250305)']);
  assert.deepEqual(encode({ tools: [search] }).body, {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    tools: [{ googleSearch: {} }],
  });
  const other = { kind: 'hosted', tool: 'other', name: 'computer', options: {} } as const;
  assert.equal(refusal(() => encode({ tools: [other] })).kind, 'invalid_request');
  assert.equal(
    refusal(() => encode({ tools: [{ ...search, options: { allowedDomains: ['a'] } }] })).kind,
    'invalid_request',
  );
});

test('pitfall 133, 135, 136: effort is said by level or by budget, and off is said where it can be', () => {
  const config = (reasoning: object, traits = {}, more = {}) =>
    encode({ reasoning, ...more }, { traits }).body.generationConfig?.thinkingConfig;
  const budget = { reasoning: 'budget' };
  assert.deepEqual(config({ effort: 'high', visible: true }), { includeThoughts: true, thinkingLevel: 'HIGH' });
  assert.deepEqual(config({ effort: 'minimal' }), { thinkingLevel: 'LOW' });
  assert.deepEqual(config({ effort: 'minimal' }, { efforts: ['minimal', 'high'] }), { thinkingLevel: 'MINIMAL' });
  assert.deepEqual(config({ effort: 'max' }), { thinkingLevel: 'HIGH' });
  assert.deepEqual(config({ effort: 'none', visible: true }), { includeThoughts: false, thinkingLevel: 'LOW' });
  assert.deepEqual(config({ budgetTokens: 9000 }), { thinkingLevel: 'HIGH' });
  assert.deepEqual(config({ visible: true }), { includeThoughts: true });
  assert.deepEqual(config({ effort: 'none' }, budget), { thinkingBudget: 0 });
  assert.deepEqual(config({ effort: 'none' }, { ...budget, reasoning_off: false }), { thinkingBudget: 128 });
  assert.deepEqual(config({ effort: 'medium' }, budget), { thinkingBudget: 8192 });
  assert.deepEqual(config({ budgetTokens: 50_000 }, { ...budget, max_budget: 24_576 }), { thinkingBudget: 24_576 });
  assert.equal(config({ effort: 'high' }, { reasoning: 'none' }), undefined);
  assert.deepEqual(encode({ reasoning: { effort: 'high' } }, { traits: { reasoning: 'none' } }).dropped, [
    'generationConfig.thinkingConfig',
  ]);
});

test('pitfall 091, 092, 147: a schema goes with the request, as a tool, or as an instruction, as the model takes it', () => {
  const schema = { type: 'object', properties: { a: { const: 'x' } } };
  const output = { form: 'schema', name: 'n', schema } as const;
  const native = encode({ output }).body.generationConfig;
  assert.deepEqual(native, {
    responseMimeType: 'application/json',
    responseJsonSchema: { type: 'object', properties: { a: { enum: ['x'] } } },
  });
  assert.deepEqual(encode({ output: { form: 'json' } }).body.generationConfig, {
    responseMimeType: 'application/json',
  });
  const apart = encode({ output, tools: [tool('f')] }, { traits: { structured_with_tools: false } });
  assert.equal(apart.body.generationConfig, undefined);
  assert.match(apart.body.systemInstruction.parts[0].text, /"const":"x"/);
  const forced = encode({ output, tools: [tool('f')] }, { traits: { structured: 'tool' } });
  assert.equal(forced.responseMapping.answerTool, forced.body.tools[0].functionDeclarations[1].name);
  assert.deepEqual(forced.body.toolConfig.functionCallingConfig, { mode: 'ANY' });
});

test('pitfall 150: five stop texts go upstream, the gateway looks for the others', () => {
  const { body, responseMapping: way } = encode({ stop: ['1', '2', '3', '4', '5', '6'] });
  assert.deepEqual(body.generationConfig.stopSequences, ['1', '2', '3', '4', '5']);
  assert.deepEqual(way.stop, ['6']);
});

test('pitfall 185: a plain request is encoded without anything that was not asked for', () => {
  const { body, path, dropped } = encode({}, { model: 'team/m x', stream: true });
  assert.deepEqual(body, { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] });
  assert.equal(path, '/models/team/m%20x:streamGenerateContent?alt=sse');
  assert.deepEqual(dropped, []);
  assert.equal(encode({}).path, '/models/m:generateContent');
});

test('settings keep within what the model takes, and members that the provider does not take are left out', () => {
  const settings = {
    temperature: 1.5,
    topP: 0.9,
    topK: 4,
    seed: 1,
    maxOutputTokens: 100_000,
    logprobs: 2,
    choices: 3,
    presencePenalty: 1,
  };
  const { body, dropped } = encode(
    { ...settings, serviceTier: 'flex' },
    { traits: { max_temperature: 1 }, maxOutputTokens: 65_536, dropFields: ['serviceTier'] },
  );
  assert.deepEqual(body.generationConfig, {
    temperature: 1,
    topP: 0.9,
    topK: 4,
    presencePenalty: 1,
    maxOutputTokens: 65_536,
    candidateCount: 3,
    seed: 1,
    responseLogprobs: true,
    logprobs: 2,
  });
  assert.equal(body.serviceTier, undefined);
  assert.deepEqual(dropped, ['generationConfig.temperature', 'serviceTier']);
  assert.deepEqual(encode({ temperature: 1 }, { traits: { sampling: false } }).dropped, [
    'generationConfig.temperature',
  ]);
  assert.equal(refusal(() => encode({ choices: 9 })).field, 'generationConfig.candidateCount');
});

test('pitfall 201: kinds of answer are said in capitals, with the options that have a counterpart', () => {
  const images = encode({ outputKinds: ['image'], imageOptions: { size: '1536x1024' } }).body.generationConfig;
  assert.deepEqual(images, { responseModalities: ['TEXT', 'IMAGE'], imageConfig: { aspectRatio: '3:2' } });
  const audio = encode({ outputKinds: ['audio'], audioOptions: { voice: 'Kore', format: 'wav' } }).body
    .generationConfig;
  assert.deepEqual(audio.responseModalities, ['AUDIO']);
  assert.equal(audio.speechConfig.voiceConfig.prebuiltVoiceConfig.voiceName, 'Kore');
  const read = decode({
    contents: [{ parts: [{ text: 'x' }] }],
    generationConfig: { responseModalities: ['Text', 'image'], imageConfig: { aspectRatio: '1:1' } },
  });
  assert.deepEqual([read.prompt.outputKinds, read.prompt.imageOptions], [['image'], { aspectRatio: '1:1' }]);
});

test('pitfall 192: media go as bytes; an address or a foreign file that is left is refused in the client’s words', () => {
  const url = { kind: 'image', source: { form: 'url', url: 'https://a.example/x' } } as const;
  const file = { kind: 'document', source: { form: 'file', id: 'file-123' } } as const;
  assert.equal(refusal(() => encode({ turns: [{ role: 'user', parts: [url] }] })).kind, 'invalid_request');
  assert.equal(refusal(() => encode({ turns: [{ role: 'user', parts: [file] }] })).kind, 'invalid_request');
  assert.equal(
    refusal(() => encode({ turns: [{ role: 'user', parts: [image] }] }, { traits: { inputs: ['audio'] } })).kind,
    'invalid_request',
  );
  const text = { kind: 'document', name: 'notes', context: 'about', source: { form: 'text', text: 'words' } } as const;
  assert.deepEqual(encode({ turns: [{ role: 'user', parts: [text, image] }] }).body.contents[0].parts, [
    { text: 'about' },
    { text: 'notes\n\nwords' },
    { inlineData: { mimeType: 'image/png', data: png } },
  ]);
});

test('a count of tokens sends the whole request in its wrapper', () => {
  const encoded = encode(
    { turns: [{ role: 'system', parts: [{ kind: 'text', text: 's' }] }, user('x')] },
    { model: 'a/b' },
  );
  const { path, body } = geminiCodec.counting!.request(encoded);
  assert.equal(path, '/models/a/b:countTokens');
  assert.deepEqual(body, { generateContentRequest: { model: 'models/a/b', ...encoded.body } });
  assert.equal(geminiCodec.counting!.tokens({ totalTokens: 7 }), 7);
  assert.equal(geminiCodec.counting!.tokens({}), undefined);
});

test('every recorded request is decoded, encoded and decoded again without a loss', () => {
  const vendorsOwn = /^(safetySettings|.*functionDeclarations\[\d+\]\.(response|responseJsonSchema))$/;
  let seen = 0;
  for (const { name, request, response, status } of recordings('gemini')) {
    if (request === undefined || status === 400 || response.length === 0) continue;
    const json = JSON.parse(request.toString('utf8'));
    if (json.cachedContent !== undefined) continue;
    const { prompt, dropped } = decode(json);
    for (const field of dropped) assert.match(field, vendorsOwn, `${name}: ${field}`);
    const hasUrls = JSON.stringify(prompt.turns).includes('"form":"url"');
    if (hasUrls) continue;
    const { body, dropped: lost } = encode(prompt, {
      traits: { reasoning: request.includes('thinkingLevel') ? 'level' : 'budget', signatures: false },
    });
    assert.deepEqual(lost, [], name);
    assert.deepEqual(decode(body).prompt, decode({ ...json, contents: body.contents }).prompt, name);
    seen++;
  }
  assert.ok(seen > 25, String(seen));
});
