import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Prompt } from '../../../../plugins/common/canonical/prompt.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { fc } from '../../../helpers/properties.ts';
import { decode, encode } from './gemini-harness.ts';

const word = fc.stringMatching(/^[a-z]{1,8}$/);
const said = fc.string({ minLength: 1 }).map((text) => ({ text }));
const args = fc.dictionary(word, fc.oneof(fc.integer(), fc.string(), fc.boolean()));
const png = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };

/** A turn of the user, and perhaps one of the model with its calls and their results in order. */
const exchange = fc
  .record({
    asked: fc.array(fc.oneof(said, fc.constant(png)), { minLength: 1, maxLength: 3 }),
    answered: fc.array(said, { maxLength: 2 }),
    calls: fc.array(fc.record({ name: word, args, response: fc.oneof(args, fc.record({ output: fc.string() })) }), {
      maxLength: 3,
    }),
  })
  .map(({ asked, answered, calls }) => {
    const parts = [...answered, ...calls.map(({ name, args }) => ({ functionCall: { name, args } }))];
    const results = calls.map(({ name, response }) => ({ functionResponse: { name, response } }));
    return [
      { role: 'user', parts: asked },
      ...(parts.length === 0 ? [] : [{ role: 'model', parts }]),
      ...(results.length === 0 ? [] : [{ role: 'user', parts: results }]),
    ];
  });

const generationConfig = fc.record(
  {
    temperature: fc.integer({ min: 0, max: 2 }),
    topP: fc.constantFrom(0.1, 0.5, 1),
    topK: fc.integer({ min: 1, max: 64 }),
    candidateCount: fc.integer({ min: 1, max: 8 }),
    maxOutputTokens: fc.integer({ min: 1, max: 90_000 }),
    stopSequences: fc.array(word, { maxLength: 5 }),
    seed: fc.integer(),
    presencePenalty: fc.integer({ min: -2, max: 2 }),
    frequencyPenalty: fc.integer({ min: -2, max: 2 }),
    responseMimeType: fc.constantFrom('text/plain', 'application/json'),
    responseModalities: fc.constantFrom(['TEXT'], ['TEXT', 'IMAGE'], ['AUDIO']),
    thinkingConfig: fc.record({
      includeThoughts: fc.boolean(),
      thinkingLevel: fc.constantFrom('LOW', 'MEDIUM', 'HIGH'),
    }),
    mediaResolution: fc.constant('MEDIA_RESOLUTION_LOW'),
  },
  { requiredKeys: [] },
);

const request = fc.record(
  {
    contents: fc.array(exchange, { minLength: 1, maxLength: 4 }).map((all) => all.flat()),
    systemInstruction: fc.record({ parts: fc.array(said, { minLength: 1, maxLength: 2 }) }),
    tools: fc.uniqueArray(word, { minLength: 1, maxLength: 3 }).map((names) => [
      {
        functionDeclarations: names.map((name) => ({
          name,
          parametersJsonSchema: { type: 'object', properties: { a: { type: 'string' } } },
        })),
      },
    ]),
    generationConfig,
    serviceTier: fc.constantFrom('flex', 'priority', 'standard'),
    safetySettings: fc.constant([{ category: 'c', threshold: 't' }]),
  },
  { requiredKeys: ['contents'] },
);

/** Turns as an upstream sees them: neighbours are one, ids do not count, a JSON object may come back in other words. */
function plain(prompt: Prompt) {
  const turns: { role: string; parts: unknown[] }[] = [];
  for (const { role, parts } of prompt.turns) {
    const seen = parts.map((part) => {
      if (part.kind === 'tool-call') return { name: part.name, input: part.input };
      return part.kind === 'tool-result'
        ? { name: part.name, of: part.parts.map((one) => (one.kind === 'text' ? one.text || '(no output)' : one)) }
        : part;
    });
    if (turns.at(-1)?.role === role) turns.at(-1)!.parts.push(...seen);
    else turns.push({ role, parts: seen });
  }
  return { ...prompt, turns };
}

test('a request that is decoded and encoded again loses only what the losses say', () => {
  fc.assert(
    fc.property(request, (json) => {
      const read = decode(json);
      const encoded = encode(read.prompt, { traits: { signatures: false } });
      const again = decode(encoded.body);
      const lost = new Set(encoded.dropped);
      const expected = Object.fromEntries(
        Object.entries(plain(read.prompt)).filter(
          ([name]) => !lost.has(geminiCodec.spelling[name as keyof typeof geminiCodec.spelling] ?? name),
        ),
      );
      assert.deepEqual(plain(again.prompt), expected);
      assert.deepEqual(lost, new Set());
      const hints = [
        ...(json.generationConfig?.mediaResolution === undefined ? [] : ['generationConfig.mediaResolution']),
        ...(json.safetySettings === undefined ? [] : ['safetySettings']),
      ];
      assert.deepEqual(new Set(read.dropped), new Set(hints));
      assert.deepEqual(
        encode(again.prompt, { traits: { signatures: false } }).body,
        encoded.body,
        'rendered twice, the same',
      );
    }),
    { numRuns: 300 },
  );
});
