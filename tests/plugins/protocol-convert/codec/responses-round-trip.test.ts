/** Requests that are encoded and decoded again: recordings and random prompts lose only what is said to be lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { EncodedRequest } from '../../../../plugins/common/canonical/codec.ts';
import type { OpaqueState, Part, Prompt, Turn } from '../../../../plugins/common/canonical/prompt.ts';
import { efforts } from '../../../../plugins/common/domain/traits.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { fc } from '../../../helpers/properties.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { decode, encode, png, refusal, system } from './responses-samples.ts';

for (const { name, request: bytes } of recordings('responses')) {
  const request = bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as JsonObject);
  // A prompt that the vendor keeps cannot be read by anybody else.
  if (request === undefined || request['prompt'] !== undefined) continue;
  test(`${name}: the recorded request is read, and rendered so that it reads the same`, () => {
    const { prompt } = decode(request, (text) => ({ maker: 'maker', value: text }));
    const only = prompt.tools.length === 1 && prompt.tools[0]!.kind === 'hosted' && prompt.tools[0]!.tool === 'other';
    if (only) {
      assert.equal(refusal(() => encode(prompt)).kind, 'invalid_request');
      return;
    }
    const { body } = encode(prompt, { efforts: [...efforts] });
    const again = decode(body, (text) => ({ maker: 'maker', value: text })).prompt;
    const { turns, tools, ...rest } = again;
    const { turns: turnsBefore, tools: toolsBefore, ...restBefore } = prompt;
    const declared = toolsBefore.filter((tool) => tool.kind !== 'hosted' || tool.tool !== 'other');
    assert.deepEqual(
      tools.map(({ name: tool }) => tool),
      declared.map(({ name: tool }) => tool),
    );
    assert.deepEqual(rest, restBefore);
    assert.deepEqual(saidIn(turns), saidIn(turnsBefore));
  });
}

/** All parts with who said them; what the system said at the beginning is one text. */
function saidIn(turns: readonly Turn[]): unknown[] {
  const start = turns.findIndex(({ role }) => role !== 'system');
  const words = turns.slice(0, start).flatMap(({ parts }) => parts.map((part) => part.kind === 'text' && part.text));
  const rest = turns.slice(start).flatMap(({ role, parts }) => parts.map((part) => [role, part]));
  return [words.join('\n\n'), ...rest];
}

const word = fc.string({ minLength: 1, maxLength: 12 });
const mark = fc.constantFrom('short' as const, 'long' as const);
const text = fc.record(
  { kind: fc.constant('text' as const), text: word, cache: mark },
  { requiredKeys: ['kind', 'text'], noNullPrototype: true },
);
const image = fc.record(
  {
    kind: fc.constant('image' as const),
    source: fc.constantFrom(
      { form: 'bytes' as const, mediaType: 'image/png', base64: png },
      { form: 'url' as const, url: 'https://a.example/b' },
    ),
    detail: fc.constantFrom('low', 'high'),
  },
  { requiredKeys: ['kind', 'source'], noNullPrototype: true },
);
const said = word.map((text) => ({ kind: 'text' as const, text }));
/** A step of a conversation: the user speaks, the assistant thinks, speaks and calls, the tools answer. */
const step = fc
  .record({
    requested: fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 3 }),
    thought: fc.option(fc.record({ text: fc.oneof(fc.constant(''), word), value: word }), { nil: undefined }),
    answer: said,
    phase: fc.option(fc.constantFrom('commentary', 'final_answer'), { nil: undefined }),
    calls: fc.array(
      fc.record({
        name: fc.constantFrom('f', 'a b', 'patch'),
        output: fc.array(fc.oneof(said, image), { minLength: 1, maxLength: 2 }),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ requested, thought, answer, phase, calls }) => (number: number): Turn[] => {
    const ids = calls.map((_, index) => `call_${number}_${index}`);
    const thinking: Part[] =
      thought === undefined
        ? []
        : [{ kind: 'reasoning', text: thought.text, opaqueState: { maker: 'maker', value: thought.value } }];
    const called: Part[] = calls.map(({ name }, index) =>
      name === 'patch'
        ? { kind: 'tool-call', id: ids[index]!, name, input: 'raw', custom: true }
        : { kind: 'tool-call', id: ids[index]!, name, input: '{"a":1}' },
    );
    const results: Part[] = calls.map(({ name, output }, index) => ({
      kind: 'tool-result',
      callId: ids[index]!,
      parts: joined(output),
      ...(name === 'patch' ? { custom: true } : {}),
    }));
    return [
      { role: 'user', parts: requested },
      { role: 'assistant', parts: [...thinking, answer, ...called], ...(phase === undefined ? {} : { phase }) },
      ...(results.length === 0 ? [] : [{ role: 'user' as const, parts: results }]),
    ];
  });

/** Texts alone are one text on the wire. */
function joined<P extends { kind: string }>(parts: readonly P[]): P[] {
  const isText = parts.every(({ kind }) => kind === 'text');
  return isText
    ? [
        {
          kind: 'text',
          text: parts.map((part) => (part as unknown as { text: string }).text).join('\n'),
        } as unknown as P,
      ]
    : [...parts];
}

const closedSchema = { type: 'object', properties: {}, required: [], additionalProperties: false };
const settings = fc.record(
  {
    maxOutputTokens: fc.integer({ min: 16, max: 9999 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    topK: fc.integer({ min: 1, max: 99 }),
    seed: fc.integer(),
    frequencyPenalty: fc.constant(1),
    presencePenalty: fc.constant(1),
    logitBias: fc.constant({ a: 1 }),
    logprobs: fc.integer({ min: 0, max: 5 }),
    verbosity: fc.constantFrom('low', 'high'),
    reasoning: fc.record(
      { effort: fc.constantFrom(...efforts.slice(1)), visible: fc.constant(true) },
      { requiredKeys: ['effort'], noNullPrototype: true },
    ),
    user: word,
    metadata: fc.constant({ a: 'b' }),
    serviceTier: fc.constantFrom('flex', 'priority'),
    cacheKey: word,
    parallelTools: fc.constant(false),
    toolChoice: fc.constantFrom<Prompt['toolChoice'] & object>(
      { mode: 'auto' },
      { mode: 'required', names: ['patch'] },
      { mode: 'auto', names: ['f', 'patch'] },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const tools: Prompt['tools'] = [
  { kind: 'function', name: 'f', description: 'F.', schema: closedSchema, strict: true },
  { kind: 'custom', name: 'patch', grammar: { syntax: 'regex', definition: 'a+' } },
];

/** `a b` is no legal name: the way back knows what it was. */
function withOwnNames(turns: readonly Turn[], { names }: EncodedRequest['responseMapping']): Turn[] {
  return turns.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part) => (part.kind === 'tool-call' ? { ...part, name: names.get(part.name)!.name } : part)),
  }));
}

test('a prompt that is encoded and decoded again loses only what its losses name', () => {
  const property = fc.property(
    fc.array(step, { minLength: 1, maxLength: 4 }),
    settings,
    fc.boolean(),
    (steps, wishes, isSampling) => {
      const turns = [system('Be brief.'), ...steps.flatMap((make, number) => make(number))];
      const prompt: Prompt = { turns, tools, ...wishes };
      const encoded = encode(prompt, { efforts: [...efforts], sampling: isSampling });
      const open = (value: string): OpaqueState => ({ maker: 'maker', value });
      const { turns: turnsBack, tools: toolsBack, ...back } = decode(encoded.body, open).prompt;
      for (const name of Object.keys(wishesOf(prompt)) as (keyof typeof back)[]) {
        const isLost = encoded.dropped.includes(responsesCodec.spelling[name] ?? name);
        assert.deepEqual(back[name], isLost ? undefined : prompt[name], name);
      }
      assert.deepEqual(toolsBack, tools);
      const marks = encoded.dropped.includes('prompt_cache_breakpoint') ? withoutMarks(turns) : turns;
      assert.deepEqual(withOwnNames(turnsBack, encoded.responseMapping), marks);
    },
  );
  fc.assert(property, { numRuns: 300 });
});

function wishesOf({ turns: _turns, tools: _tools, ...rest }: Prompt): Omit<Prompt, 'turns' | 'tools'> {
  return rest;
}

function withoutMarks(turns: readonly Turn[]): Turn[] {
  const bare = (part: Part): Part => {
    if (!('cache' in part)) return part;
    const { cache: _cache, ...rest } = part;
    return rest;
  };
  return turns.map((turn) => ({ ...turn, parts: turn.parts.map(bare) }));
}
