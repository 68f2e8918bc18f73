/** Random prompts of what two or more protocols have words for. */

import type { Part, Prompt, Tool, ToolCallPart, Turn } from '../../plugins/common/canonical/prompt.ts';
import { fc } from '../helpers/properties.ts';
import { pdf, png } from '../matrix/scenarios.ts';

const word = fc.string({ minLength: 1, maxLength: 24 }).map((text) => `${text.replaceAll(/\s+/g, ' ')}w`);
const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,20}$/);
const text = word.map((said): Part => ({ kind: 'text', text: said }));
const image = fc.constant<Part>({
  kind: 'image',
  source: { form: 'bytes', mediaType: 'image/png', base64: png },
});
const document = fc.constant<Part>({
  kind: 'document',
  source: { form: 'bytes', mediaType: 'application/pdf', base64: pdf },
  name: 'paper.pdf',
});

const thought = fc.tuple(word, fc.uint8Array({ minLength: 6, maxLength: 30 })).map(
  ([said, bytes]): Part => ({
    kind: 'reasoning',
    text: said,
    opaqueState: { maker: 'maker', value: Buffer.from(bytes).toString('base64') },
  }),
);

const schema = fc.uniqueArray(name, { minLength: 1, maxLength: 4 }).chain((names) =>
  fc.constantFrom('string', 'number', 'boolean').map((type) => ({
    type: 'object',
    properties: Object.fromEntries(names.map((one) => [one, { type, description: `the ${one}` }])),
    required: names,
    additionalProperties: false,
  })),
);

const tools = fc
  .uniqueArray(fc.tuple(name, word, schema), { selector: ([one]) => one, minLength: 1, maxLength: 4 })
  .map((all) =>
    all.map(([one, description, form]): Tool => ({ kind: 'function', name: one, description, schema: form })),
  );

/** A step of calls and the turn that answers them. */
function stepOf(names: readonly string[], seed: number): fc.Arbitrary<Turn[]> {
  const input = fc.dictionary(name, fc.oneof(word, fc.integer(), fc.boolean()), { maxKeys: 3 });
  return fc
    .array(fc.tuple(fc.constantFrom(...names), input, word, fc.boolean()), { minLength: 1, maxLength: 3 })
    .chain((calls) =>
      fc.tuple(fc.option(word, { nil: undefined }), fc.option(thought)).map(([said, reasoning]) => {
        const parts = calls.map(
          ([called, args], index): ToolCallPart => ({
            kind: 'tool-call',
            id: `call_${seed}_${index}`,
            name: called,
            input: JSON.stringify(args),
          }),
        );
        const results = calls.map(
          ([called, , reported, isError], index): Part => ({
            kind: 'tool-result',
            callId: `call_${seed}_${index}`,
            name: called,
            parts: [{ kind: 'text', text: reported }],
            ...(isError ? { isError } : {}),
          }),
        );
        return [
          {
            role: 'assistant',
            parts: [
              ...(reasoning === null ? [] : [reasoning]),
              ...(said === undefined ? [] : [{ kind: 'text' as const, text: said }]),
              ...parts,
            ],
          },
          { role: 'user', parts: results },
        ];
      }),
    );
}

const userTurn = fc.array(fc.oneof({ arbitrary: text, weight: 6 }, image, document), { minLength: 1, maxLength: 3 });

function historyOf(declared: readonly Tool[]): fc.Arbitrary<Turn[]> {
  const names = declared.map((tool) => tool.name);
  const talk = fc.tuple(userTurn, word).map(([parts, said]): Turn[] => [
    { role: 'user', parts },
    { role: 'assistant', parts: [{ kind: 'text', text: said }] },
  ]);
  const work = fc
    .tuple(userTurn, fc.nat(1_000_000))
    .chain(([parts, seed]) => stepOf(names, seed).map((step): Turn[] => [{ role: 'user', parts }, ...step, answer]));
  const rounds = fc.array(fc.oneof(talk, ...(names.length > 0 ? [work] : [])), { maxLength: 3 });
  return fc.tuple(rounds, userTurn).map(([before, parts]) => [...before.flat(), { role: 'user', parts }]);
}
const answer: Turn = { role: 'assistant', parts: [{ kind: 'text', text: 'Done.' }] };

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const share = fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10);

const settings = fc.record({
  maxOutputTokens: maybe(fc.integer({ min: 16, max: 8_000 })),
  temperature: maybe(share),
  topP: maybe(share),
  topK: maybe(fc.integer({ min: 1, max: 40 })),
  stop: maybe(fc.uniqueArray(word, { minLength: 1, maxLength: 4 })),
  seed: maybe(fc.nat(1_000)),
  frequencyPenalty: maybe(share),
  presencePenalty: maybe(share),
  verbosity: maybe(fc.constantFrom('low', 'medium', 'high')),
  parallelTools: maybe(fc.constant(false)),
  reasoning: maybe(fc.constantFrom('low', 'medium', 'high').map((effort) => ({ effort }) as const)),
  output: maybe(
    fc
      .tuple(schema, fc.boolean())
      .map(([form, strict]) => ({ form: 'schema', name: 'answer', schema: form, strict }) as const),
  ),
  user: maybe(name),
  cacheKey: maybe(name),
  logprobs: maybe(fc.integer({ min: 0, max: 5 })),
  metadata: maybe(fc.constant({ a: 'b' })),
  serviceTier: maybe(fc.constantFrom('flex', 'priority')),
  choices: fc.oneof({ arbitrary: fc.constant(undefined), weight: 9 }, fc.constant(2)),
});

function without<T extends object>(record: T, name: string): T {
  return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name)) as T;
}

/** Prompts that hold what protocols commonly have; absent members are left out. */
export const prompts: fc.Arbitrary<Prompt> = fc
  .tuple(
    maybe(word),
    fc.oneof(fc.constant<Tool[]>([]), tools),
    settings,
    fc.constantFrom('auto', 'none', 'required', 'one', undefined),
  )
  .chain(([system, declared, set, choice]) =>
    historyOf(declared).map((turns): Prompt => {
      const head: Turn[] = system === undefined ? [] : [{ role: 'system', parts: [{ kind: 'text', text: system }] }];
      const present = Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined));
      const toolChoice = choice === 'one' ? { mode: 'required', names: [declared[0]?.name ?? ''] } : { mode: choice };
      return {
        ...(declared.length === 0 ? without(present, 'parallelTools') : present),
        ...(choice === undefined || declared.length === 0 ? {} : { toolChoice }),
        turns: [...head, ...turns],
        tools: declared,
      } as Prompt;
    }),
  );
