/** Calls whose vendors reported nothing: charged by what is known of their conversation and target, never above their hold. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { PromptMemory } from '../../../../plugins/billing/estimates/prompt-memory.ts';
import { judge, type Likely } from '../../../../plugins/billing/reservations/outcome.ts';
import { type Conversation, conversation, usageReport } from '../../../../plugins/common/domain/calls.ts';
import { cost, costBound } from '../../../../plugins/common/domain/money.ts';
import { type Price, promptTokens, type Usage } from '../../../../plugins/common/domain/usage.ts';
import { fc } from '../../../helpers/properties.ts';
import { answer, attemptOf, entered, leaveWorlds, limits, newWorld, report, send, type World } from '../world.ts';

after(leaveWorlds);

const to = { provider: 'vendor', model: 'vendor-model' };
const minute = 60_000;
const price: Price = {
  input: 2_000n,
  cache_read: 200n,
  cache_write_5m: 2_500n,
  cache_write_1h: 4_000n,
  output: 10_000n,
};

const count = fc.integer({ min: 0, max: 200_000 });
const usageOf = fc.record(
  { input: count, cache_read: count, cache_write_5m: count, cache_write_1h: count, output: count, reasoning: count },
  { requiredKeys: [] },
);
const step = fc.record({
  account: fc.constantFrom('a', 'b'),
  mark: fc.integer({ min: 0, max: 9 }),
  inputTokens: fc.integer({ min: 1, max: 300_000 }),
  usage: usageOf,
  bytes: count,
  waitMs: fc.integer({ min: 0, max: 20 * minute }),
  seen: fc.record({ bytes: count, tokens: count }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** What a call is charged that ends without a report: as `judge` decides. */
function charged({ inputTokens, seen }: Step, likely: Likely): Usage {
  const usage = { input: inputTokens, output: seen.tokens };
  const verdict = judge({
    attempts: [attemptOf('answered')],
    sent: [{ ...attemptOf('answered'), at: 0 }],
    report: report(usage, { estimated: true, terminal: false, unreported: { prompt: true, ...seen }, seen }),
    outcome: 'client_left',
    ...limits(inputTokens),
    likely,
  });
  assert(verdict.kind === 'SETTLE' && verdict.estimated);
  return verdict.usage;
}

/** Throws where an estimate is not whole, above the hold, or has more in the cache than the last call left there. */
function check(steps: readonly Step[], change: (likely: Likely) => Likely = (likely) => likely): void {
  const memory = new PromptMemory();
  const last = new Map<string, { usage: Usage; inputTokens: number; at: number }>();
  let at = 1_800_000_000_000;
  for (const one of steps) {
    at += one.waitMs;
    const requested = { accountId: one.account, inputTokens: one.inputTokens };
    const before = last.get(`${one.account} ${one.mark}`);
    const usage = charged(one, change(memory.likely(requested, one.mark, to, at)));
    for (const number of Object.values(usage)) assert(Number.isSafeInteger(number) && number >= 0);
    assert(promptTokens(usage) <= one.inputTokens, 'above the prompt that was held');
    assert(usage.output! <= one.seen.tokens, 'above the answer that was held');
    assert(cost(usage, price) <= costBound(one.inputTokens, one.seen.tokens, price), 'above the hold');
    const { cache_read: read = 0 } = usage;
    if (before === undefined) assert.equal(read, 0, 'cached without an earlier call');
    else assert(read <= promptTokens(before.usage), 'more cached than there was');
    const { cache_read: readBefore = 0, cache_write_5m: short, cache_write_1h: long } = before?.usage ?? {};
    const isAlike =
      before !== undefined &&
      before.inputTokens === one.inputTokens &&
      one.waitMs < minute &&
      promptTokens(before.usage) <= one.inputTokens;
    if (isAlike && before.at === at - one.waitMs && short === undefined && long === undefined)
      assert(read >= Math.min(readBefore, promptTokens(usage)), 'the cached part is charged in full');
    memory.learn(requested, one.mark, to, one.usage, one.bytes, at);
    if (promptTokens(one.usage) > 0) last.set(`${one.account} ${one.mark}`, { ...one, at });
  }
}

/** Half of the steps ask the same again. */
const history = fc
  .array(fc.tuple(step, fc.boolean()), { minLength: 1, maxLength: 30 })
  .map((all) => all.flatMap(([one, again]) => (again ? [one, { ...one, waitMs: 5_000 }] : [one])));

test('estimates are whole numbers, never above the hold, with no more cached tokens than the last call left', () => {
  fc.assert(
    fc.property(history, (steps) => check(steps)),
    { numRuns: 300 },
  );
});

const mutants: Record<string, (likely: Likely) => Likely> = {
  'above the hold': ({ prompt = {}, ...rest }) => ({
    ...rest,
    prompt: { ...prompt, input: (prompt.input ?? 0) + 500_000 },
  }),
  'the cached part at the full price': ({ prompt, ...rest }) => ({
    ...rest,
    prompt: prompt && { input: promptTokens(prompt) },
  }),
  'all of it cached': ({ prompt, ...rest }) => ({ ...rest, prompt: prompt && { cache_read: promptTokens(prompt) } }),
  'a part of a token': ({ prompt, ...rest }) => ({ ...rest, prompt: prompt && { ...prompt, input: 0.5 } }),
};
for (const [name, change] of Object.entries(mutants)) {
  test(`a planted fault is found: ${name}`, () => {
    assert.throws(() =>
      fc.assert(
        fc.property(history, (steps) => check(steps, change)),
        { numRuns: 300, seed: 7 },
      ),
    );
  });
}

const talk = (mark: number, more: Partial<Conversation> = {}): Conversation => ({
  name: undefined,
  opening: () => undefined,
  mark,
  ...more,
});

/** A call of 1,000 tokens by its size; 10,000 nano-USD a token of prompt, a tenth of that from the cache. */
async function call(world: World, more: { accountId?: string; talk?: Conversation; inputTokens?: number } = {}) {
  const { inputTokens = 1_000, accountId = 'alice' } = more;
  const exchange = await entered(world, {
    accountId,
    call: { inputTokens },
    facts: [[conversation, more.talk ?? talk(2)]],
  });
  return exchange;
}

/** The client leaves in the middle of an answer of which the vendor has reported nothing. */
async function leave(exchange: Awaited<ReturnType<typeof call>>, inputTokens = 1_000): Promise<void> {
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  const seen = { bytes: 300, tokens: 100 };
  const usage = { input: inputTokens, output: 100 };
  const open = { estimated: true, terminal: false, unreported: { prompt: true, ...seen }, seen };
  exchange.set(usageReport, report(usage, open));
  await exchange.end({ kind: 'client_left' });
}

async function usageOfCall(world: World, { id }: { readonly id: string }): Promise<unknown> {
  await world.tick('sync the journal');
  await world.tick('write the ledger');
  const [row] = await world.rows<{ classes: Usage; estimated: boolean }>(
    sql`select classes, estimated from ${world.table('calls')} where id = ${id}`,
  );
  const { input = 0, cache_read: read = 0, output } = row!.classes;
  return [input, read, output, row!.estimated];
}

test('a disconnected client pays for its prompt as the last call of its conversation was counted, after a crash as well', async () => {
  const world = await newWorld({ credit: '10' });
  await answer(await call(world), { input: 40, cache_read: 360, output: 50 });
  const same = await call(world);
  await leave(same);
  assert.deepEqual(await usageOfCall(world, same), [40, 360, 100, true]);

  const another = await call(world, { talk: talk(4) });
  await leave(another);
  assert.deepEqual(await usageOfCall(world, another), [1_000, 0, 100, true], 'nothing is known of it');

  const lost = await call(world);
  await leave(lost);
  await world.tick('sync the journal');
  const heir = await world.crash();
  assert.deepEqual(await usageOfCall(heir, lost), [40, 360, 100, true]);
  assert.deepEqual((await heir.audit()).violations, []);
});

test('counts of a target apply to other accounts and conversations, after three calls of such a size', async () => {
  const world = await newWorld();
  for (const accountId of ['alice', 'bob']) await world.credit('10', accountId);
  for (const mark of [2, 4, 6]) await answer(await call(world, { talk: talk(mark) }), { input: 400, output: 50 });
  const other = await call(world, { accountId: 'bob', talk: talk(8) });
  await leave(other);
  assert.deepEqual(await usageOfCall(world, other), [400, 0, 100, true]);
  const withTools = await call(world, { accountId: 'bob', talk: talk(9) });
  await leave(withTools);
  assert.deepEqual(await usageOfCall(world, withTools), [1_000, 0, 100, true]);
});

test('without counts the prompt is tokenized at the end, never above the hold, and the request is dropped', async () => {
  const world = await newWorld({ credit: '10' });
  for (const [counted, expected] of [
    [250, 250],
    [5_000, 1_000],
    [undefined, 1_000],
  ] as const) {
    const done: string[] = [];
    const own = talk(2, {
      keep: () => void done.push('keep'),
      forget: () => void done.push('forget'),
      countPrompt: async () => {
        done.push('count');
        return counted;
      },
    });
    const exchange = await call(world, { talk: own });
    await leave(exchange);
    assert.deepEqual(await usageOfCall(world, exchange), [expected, 0, 100, true]);
    assert.deepEqual(done, ['keep', 'count', 'forget']);
  }
});

test('a call with reported usage is neither kept nor tokenized once its conversation is known', async () => {
  const world = await newWorld({ credit: '10' });
  await answer(await call(world), { input: 400, output: 50 });
  const own = talk(2, { keep: () => assert.fail('kept'), countPrompt: () => assert.fail('counted') });
  await answer(await call(world, { talk: own }), { input: 410, output: 50 });
});
