/** Answers in any pieces: what is found and put back, what is refused as an answer, and events that stay the same objects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '../../../plugins/common/canonical/reply.ts';
import type { GuardrailCheck } from '../../../plugins/common/guardrails/checks.ts';
import { replaceTexts } from '../../../plugins/common/wire/replace-texts.ts';
import { AnswerCheck, type Release } from '../../../plugins/guardrails/answer/answer-check.ts';
import { localChecks } from '../../../plugins/guardrails/checks/local.ts';
import { type CallTools, GuardedCall } from '../../../plugins/guardrails/guarded-call.ts';
import { Breaker, type OpenCheck } from '../../../plugins/guardrails/open-checks.ts';
import { checkPrompt } from '../../../plugins/guardrails/prompt-check.ts';
import { JsonTexts } from '../../../plugins/prompts/texts.ts';
import { fc } from '../../helpers/properties.ts';

const clock = { now: () => 0, monotonic: () => 0 };
const tools: CallTools = {
  clock,
  log: { warn: () => {} },
  broken: () => {},
  digest: () => 'd',
  said: () => {},
};

const usual = {
  on: ['prompt', 'answer'] as ('prompt' | 'answer')[],
  do: 'mask' as const,
  as: 'error' as const,
  message: 'Not here.',
  within: 1_000,
  broken: 'refuse' as const,
  beside: false,
  restore: false,
};

async function opened(type: string, config: object, settings: Partial<OpenCheck['settings']> = {}): Promise<OpenCheck> {
  const found = localChecks.find((one) => one.name === type)!;
  const parsed = (found.config as unknown as { parse(value: unknown): unknown }).parse(config);
  const check: GuardrailCheck = await found.open(parsed, {} as never);
  return { name: type, settings: { ...usual, ...settings }, check, breaker: new Breaker(clock), digest: '' };
}

/** A text block in these pieces, with what comes before and behind. */
function answerOf(pieces: readonly string[], kind: 'text' | 'reasoning' | 'tool' = 'text'): Event[] {
  const at = { block: 0, choice: 0 };
  const start =
    kind === 'tool'
      ? { type: 'tool-start', ...at, id: 'c', name: 'f', namespace: undefined, custom: false }
      : { type: `${kind}-start`, ...at };
  const end =
    kind === 'tool'
      ? { type: 'tool-end', ...at, opaqueState: undefined, isCut: false }
      : { type: `${kind}-end`, ...at, opaqueState: 'signed', redacted: false };
  return [
    { type: 'reply-start', id: 'r', createdAt: undefined, serviceTier: undefined },
    start as Event,
    ...pieces.map((text) => ({ type: `${kind}-delta`, ...at, text, logprobs: undefined }) as Event),
    end as Event,
    { type: 'stop', choice: 0, reason: 'stop', sequence: undefined },
  ];
}

async function passed(
  transforms: readonly { event(event: Event): readonly Event[] | Promise<readonly Event[]> }[],
  events: readonly Event[],
) {
  let current = events;
  for (const transform of transforms) {
    const out: Event[] = [];
    for (const event of current) out.push(...(await transform.event(event)));
    current = out;
  }
  return current;
}

const textIn = (events: readonly Event[]) =>
  events.map((event) => (event.type.endsWith('-delta') ? (event as { text: string }).text : '')).join('');

const piecesRelease: Release = { mode: 'pieces', release: 10, overlap: 24 };

/** A text cut at any places. */
const chunked = (text: fc.Arbitrary<string>) =>
  text.chain((whole) =>
    fc.array(fc.nat({ max: whole.length }), { maxLength: 12 }).map((cuts) => {
      const sorted = [0, ...cuts.toSorted((one, other) => one - other), whole.length];
      return { whole, pieces: sorted.slice(1).map((end, index) => whole.slice(sorted[index], end)) };
    }),
  );

const filler = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '.', '-', '[', ']', '1', 'é', '\n'), maxLength: 40 });
const address = fc.constantFrom('ada@example.com', 'bob.b@mail.example.org', 'é@ex.de');

test('restoring after masking gives the original text for any chunking, in texts and in tool arguments', async () => {
  const mail = await opened('patterns', { find: ['email'] }, { restore: true, on: ['prompt'] });
  const texts = fc
    .array(fc.tuple(filler, address), { minLength: 1, maxLength: 5 })
    .map((list) => list.map(([one, other]) => `${one} ${other} `).join(''));
  await fc.assert(
    fc.asyncProperty(
      texts,
      fc.constantFrom('text' as const, 'tool' as const),
      fc.array(fc.nat(), { maxLength: 12 }),
      async (text, kind, cuts) => {
        const call = new GuardedCall([mail], { operation: 'chat' }, tools);
        const body = new JsonTexts(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text }] })));
        await checkPrompt(call, body);
        const masked = body.texts[0]!.text;
        assert.doesNotMatch(masked, /@/);
        const { restored } = call.placeholders;
        const names = [...restored.keys()];
        const pattern = new RegExp(names.map((name) => name.replace(/[[\]]/g, String.raw`\$&`)).join('|'), 'g');
        const longest = Math.max(...names.map(({ length }) => length));
        const said = kind === 'tool' ? JSON.stringify({ to: masked }) : masked;
        const sorted = [
          0,
          ...cuts.map((cut) => cut % (said.length + 1)).toSorted((one, other) => one - other),
          said.length,
        ];
        const pieces = sorted.slice(1).map((end, index) => said.slice(sorted[index], end));
        const by = (match: string) => restored.get(match)!;
        const out = textIn(
          await passed(
            [new AnswerCheck(call, piecesRelease), replaceTexts({ pattern, longest, by })],
            answerOf(pieces, kind),
          ),
        );
        assert.equal(kind === 'tool' ? (JSON.parse(out) as { to: string }).to : out, text);
      },
    ),
    { numRuns: 150 },
  );
});

test('a word is masked wherever an answer is cut, and what surrounds it stays', async () => {
  const words = await opened('words', { list: ['forbidden fruit'] });
  const text = fc.tuple(filler, filler).map(([one, other]) => `${one} forbidden fruit ${other}`);
  await fc.assert(
    fc.asyncProperty(chunked(text), async ({ whole, pieces }) => {
      const call = new GuardedCall([words], { operation: 'chat' }, tools);
      const out = await passed([new AnswerCheck(call, piecesRelease)], answerOf(pieces));
      assert.equal(textIn(out), whole.replace('forbidden fruit', '[WORD-1]'));
    }),
    { numRuns: 150 },
  );
});

test('where nothing is found, every event is the same object in the same order', async () => {
  const words = await opened('words', { list: ['forbidden fruit'] });
  await fc.assert(
    fc.asyncProperty(
      chunked(filler),
      fc.constantFrom('text' as const, 'reasoning' as const, 'tool' as const),
      async ({ pieces }, kind) => {
        const events = answerOf(pieces, kind);
        const call = new GuardedCall([words], { operation: 'chat' }, tools);
        const out = await passed([new AnswerCheck(call, piecesRelease)], events);
        assert.equal(out.length, events.length);
        assert.ok(out.every((event, index) => event === events[index]));
      },
    ),
    { numRuns: 100 },
  );
});

test('a word that goes on in the next piece is another word, and is not refused', async () => {
  const words = await opened('words', { list: ['ban'] }, { do: 'refuse' });
  const call = new GuardedCall([words], { operation: 'chat' }, tools);
  const out = await passed(
    [new AnswerCheck(call, { mode: 'pieces', release: 1, overlap: 0 })],
    answerOf(['a yellow ban', 'ana']),
  );
  assert.equal(textIn(out), 'a yellow banana');
});

test('a refusal as an answer drops the rest, ends open blocks and says its text with the reason refusal', async () => {
  const words = await opened('words', { list: ['banana'] }, { do: 'refuse', as: 'answer' });
  for (const kind of ['text', 'reasoning', 'tool'] as const) {
    const call = new GuardedCall([words], { operation: 'chat' }, tools);
    const pieces =
      kind === 'tool' ? ['{"a":"ban', 'ana"}'] : ['Here is a ban', 'ana for you, and a long text behind it.'];
    const out = await passed([new AnswerCheck(call, piecesRelease)], answerOf(pieces, kind));
    assert.ok(!textIn(out).includes('banana'));
    assert.match(textIn(out), /Not here\.$/);
    assert.deepEqual(out.at(-1), { type: 'stop', choice: 0, reason: 'refusal', sequence: undefined });
    const ends = out.filter(({ type }) => type === `${kind}-end`);
    assert.equal(ends.length, kind === 'text' ? 2 : 1);
    if (kind === 'tool') assert.equal((ends[0] as { isCut: boolean }).isCut, true);
  }
});

test('texts that an answer had masked are not put back, in a second attempt either', async () => {
  const mail = await opened('patterns', { find: ['email'] }, { restore: true });
  const call = new GuardedCall([mail], { operation: 'chat' }, tools);
  const out = await passed([new AnswerCheck(call, piecesRelease)], answerOf(['write to bob@example.com ', 'today']));
  assert.equal(textIn(out), 'write to [EMAIL-1] today');
  assert.equal(call.placeholders.restored.size, 0);
});

test('a finding at the beginning of a text waits until it has ended', async () => {
  const words = await opened('words', { list: ['ban'] }, { do: 'refuse' });
  const call = new GuardedCall([words], { operation: 'chat' }, tools);
  const out = await passed(
    [new AnswerCheck(call, { mode: 'pieces', release: 1, overlap: 0 })],
    answerOf(['ban', 'ana']),
  );
  assert.equal(textIn(out), 'banana');
});

test('a signature of thinking goes when its text was masked, and stays otherwise', async () => {
  const words = await opened('words', { list: ['banana'] });
  for (const [text, state] of [
    ['a banana', undefined],
    ['an apple', 'signed'],
  ] as const) {
    const call = new GuardedCall([words], { operation: 'chat' }, tools);
    const out = await passed([new AnswerCheck(call, piecesRelease)], answerOf([text], 'reasoning'));
    assert.equal((out.find(({ type }) => type === 'reasoning-end') as { opaqueState: unknown }).opaqueState, state);
  }
});

test('at the end: all text leaves at once, and a finding is noted', async () => {
  const words = await opened('words', { list: ['banana'] }, { do: 'refuse' });
  const call = new GuardedCall([words], { operation: 'chat' }, tools);
  const out = await passed(
    [new AnswerCheck(call, { mode: 'end', release: 1, overlap: 0 })],
    answerOf(['a ban', 'ana']),
  );
  assert.equal(textIn(out), 'a banana');
  assert.equal(call.verdicts.header, 'words=logged(1)');
});
