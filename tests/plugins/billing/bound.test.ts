/** The overdraft bound that `check` prints. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { boot } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { overdraftNotices } from '../../../plugins/billing/reservations/bound.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { parseRatio } from '../../../plugins/common/domain/money.ts';
import type { PlanTerms } from '../../../plugins/common/domain/plans.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { startGateway } from '../../helpers/gateway.ts';

const model = (id: string, maxOutputTokens: number | undefined, output: bigint): Model => ({
  id,
  ownedBy: 'x',
  created: 0,
  displayName: id,
  kind: 'chat',
  targets: [],
  contextTokens: 200_000,
  maxOutputTokens,
  prices: flatBook({ input: 0n, output }, '1'),
});
const plan = (name: string, concurrency?: number, multiplier?: string): PlanTerms => ({
  name,
  limits: concurrency === undefined ? {} : { concurrency },
  models: undefined,
  multiplier: multiplier === undefined ? undefined : parseRatio(multiplier),
});
const usdPerMillion = (usd: bigint) => usd * 1_000_000_000n;

test("the bound is the dearest long answer's cost beyond the hold, times the calls that may run at once", () => {
  const models = [model('cheap', 100_000, usdPerMillion(1n)), model('dear', 104_096, usdPerMillion(20n))];
  const [notice] = overdraftNotices({
    rules: { stepTokens: 4_096, nonStreaming: 'estimate' },
    at: 0,
    models,
    plans: [plan('free', 5)],
  });
  assert.deepEqual(notice, {
    level: 'info',
    text: 'plan "free": an account can get at most 10.00 USD below zero (5 calls of dear)',
  });
});

test('a multiplier counts, a missing longest answer counts with the context, a missing limit is a warning', () => {
  const models = [model('open', undefined, usdPerMillion(10n))];
  const [twice, unlimited] = overdraftNotices({
    rules: { stepTokens: 0, nonStreaming: 'estimate' },
    at: 0,
    models,
    plans: [plan('two', 1, '2'), plan('none')],
  });
  assert.match(twice!.text, /at most 4\.00 USD/);
  assert.equal(unlimited!.level, 'warning');
});

test('the dearest model is one that the plan allows, by whatever name, at the ratio that its accounts pay', () => {
  const models = [model('cheap', 1_000_000, usdPerMillion(1n)), model('dear', 1_000_000, usdPerMillion(20n))];
  const notices = overdraftNotices({
    rules: { stepTokens: 0, nonStreaming: 'estimate' },
    at: 0,
    models,
    idOf: (name) => (name === 'best' ? 'dear' : name),
    plans: [
      { ...plan('small', 2), models: new Set(['cheap']) },
      { ...plan('by alias', 2), models: new Set(['best', 'cheap']) },
      { ...plan('nothing', 2), models: new Set(['gone']) },
      plan('sold', 1, '3'),
    ],
    multipliers: { of: (name) => parseRatio(name === 'sold' ? '2.5' : '1') },
  });
  assert.deepEqual(
    notices.map(({ text }) => text),
    [
      'plan "small": an account can get at most 2.00 USD below zero (2 calls of cheap)',
      'plan "by alias": an account can get at most 40.00 USD below zero (2 calls of dear)',
      'plan "sold": an account can get at most 50.00 USD below zero (1 calls of dear)',
    ],
  );
});

test('without a priced model there is no bound', () => {
  assert.deepEqual(
    overdraftNotices({
      rules: { stepTokens: 1, nonStreaming: 'estimate' },
      at: 0,
      models: [],
      plans: [plan('free', 5)],
    }),
    [],
  );
});

test('holds that cover whole answers leave no bound', () => {
  const models = [model('dear', 104_096, usdPerMillion(20n))];
  const rules = { stepTokens: 4_096, nonStreaming: 'max' } as const;
  const notices = overdraftNotices({ rules, at: 0, models, plans: [plan('free', 5), plan('none')] });
  assert.deepEqual(
    notices.map(({ level }) => level),
    ['info'],
  );
});

test('a limit that no plugin enforces bounds nothing, and the notice names the plugin to add', () => {
  const models = [model('dear', 1_000_000, usdPerMillion(20n))];
  const noticesWith = (unlimited: 'all' | readonly string[]) =>
    overdraftNotices({
      rules: { stepTokens: 0, nonStreaming: 'estimate' },
      at: 0,
      models,
      plans: [plan('free', 5)],
      unlimited,
    });
  const unbounded = 'plan "free": an account can get 20.00 USD below zero for each call that runs at once (dear)';
  assert.deepEqual(noticesWith('all'), [
    { level: 'warning', text: `${unbounded}; the plan's limit of 5 is not enforced: add "rate-limit" to the list` },
  ]);
  assert.deepEqual(noticesWith(['messages', 'chat']), [
    {
      level: 'warning',
      text: `${unbounded}; the plan's limit of 5 is not enforced on messages, chat: add them to "rate-limit.endpoints"`,
    },
  ]);
  assert.match(noticesWith([])[0]!.text, /at most 100\.00 USD below zero \(5 calls of dear\)/);
});

const yaml = (plugins: string, more = '') => `gateway: test
listen: 127.0.0.1:0
plugins: [${plugins}]
plans: { default: free, offers: { free: { price: 0, limits: { concurrency: 2 } } } }
providers: { vendor: { keys: key, speaks: { chat: 'http://127.0.0.1:1/v1' } } }
models: { m: { owned_by: x, targets: [vendor], context: 100k, max_output: 4k, price: { input: 1, output: 2 } } }
billing: { hold: { output_tokens: 0 } }
protocol-convert: { expose: [chat, messages] }
${more}`;
const [above, below] = ['storage, auth, plans', 'providers, models, billing, route, protocol-convert'];

test('the bound of a file counts a limit only where rate-limit covers every charged operation', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'bound-'));
  const noticesOf = async (text: string) => {
    const file = join(directory, 'gateway.yaml');
    await writeFile(file, text);
    const gateway = await boot(file, { mode: 'check', log: createLog('silent'), environment: {} });
    const notices = gateway.notices().filter(({ text: reported }) => /below zero|not enforced/.test(reported));
    await gateway.stop(0);
    return notices;
  };
  try {
    const none = await noticesOf(yaml(`${above}, ${below}`));
    assert.deepEqual(
      none.map(({ level }) => level),
      ['warning', 'warning'],
    );
    assert.match(none[0]!.text, /has limits \(concurrency\), but they are not enforced/);
    assert.match(none[1]!.text, /limit of 2 is not enforced: add "rate-limit"/);
    const [whole] = await noticesOf(yaml(`${above}, rate-limit, ${below}`));
    assert.match(whole!.text, /at most 0\.0\d+ USD below zero \(2 calls of m\)/);
    const [partly] = await noticesOf(yaml(`${above}, rate-limit, ${below}`, 'rate-limit: { endpoints: [chat] }\n'));
    assert.match(partly!.text, /not enforced on messages: add them/);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('a start logs the warnings that check prints', async (context) => {
  const gateway = await startGateway(yaml(`${above}, ${below}`));
  context.after(() => gateway.stop());
  await gateway.stop();
  const lines = gateway.lines.filter((line) => line.includes('"warnings"'));
  assert.equal(lines.length, 1);
  const { warnings } = JSON.parse(lines[0]!) as { warnings: string[] };
  assert.ok(warnings.some((text) => /plan "free" has limits \(concurrency\), but they are not enforced/.test(text)));
  assert.ok(warnings.some((text) => /limit of 2 is not enforced: add "rate-limit" to the list/.test(text)));
});
