/** What a hold and its settlement cost beside the journal: `npm run bench:hold`. Prints nanoseconds for both together. */

import type { GrantBalance } from '../../plugins/billing/grants/balances.ts';
import type { Funds } from '../../plugins/billing/grants/funds.ts';
import { Backlog } from '../../plugins/billing/ledger/backlog.ts';
import { Balance } from '../../plugins/billing/ledger/balance.ts';
import { BalanceCache } from '../../plugins/billing/ledger/balance-cache.ts';
import { type Hold, sentAttempts } from '../../plugins/billing/reservations/hold.ts';
import { attemptNotes, judge } from '../../plugins/billing/reservations/outcome.ts';
import { Reservations, type ReservationsOptions } from '../../plugins/billing/reservations/reservations.ts';
import type { Terms } from '../../plugins/billing/reservations/terms.ts';
import { share } from '../../plugins/billing/reservations/written-off.ts';
import type { Attempt, UsageReport } from '../../plugins/common/domain/calls.ts';
import type { Model } from '../../plugins/common/domain/models.ts';
import { money, one, oneTool, parseRatio, parseUsd, type Ratio } from '../../plugins/common/domain/money.ts';
import { flatBook, type PriceBook, type PriceContext, PriceVersion } from '../../plugins/common/domain/prices.ts';
import { unknownSize } from '../../plugins/common/wire/possible-usage.ts';

const runs = 200_000;
const rounds = 9;
/** Calls that share one write of the journal and one batch. */
const callsOfTurn = 50;
const now = 1_800_000_000_000;
const clock = { now: () => now, monotonic: () => 0 } as never;

/** Everything is as it serves, but what is appended to the journal goes nowhere. */
async function busyReservations(funds: Funds): Promise<{ reservations: Reservations; turn: () => void }> {
  let sequence = 0;
  const slab = Buffer.alloc(callsOfTurn);
  const backlog = new Backlog(() => {});
  const balances = new BalanceCache({ clock, limit: 10, idleMs: 1_000, kind: Balance, fundsOf: async () => funds });
  const balance = await balances.acquire('a');
  balance.checked(now, Number.POSITIVE_INFINITY);
  const written = { promise: Promise.resolve(), failed: false };
  const journal = {
    accepting: () => true,
    writing: () => true,
    append: () => ++sequence,
    writtenSequence: 0,
    turn: () => written,
  };
  const rest = { flusher: { shutOut: false }, clock, log: {}, stepTokens: 4_096, backlogLimit: 1_000_000 };
  const reservations = new Reservations({ journal, backlog, balances, ...rest } as unknown as ReservationsOptions);
  const turn = () => {
    backlog.written(slab, 0, slab.length, sequence);
    backlog.take();
    backlog.drop();
  };
  return { reservations, turn };
}

const rich: Funds = { balance: parseUsd('900000000') };
const grantOf = (grantId: string, days: number): GrantBalance => ({
  grantId,
  remaining: parseUsd('1000000'),
  expiresAt: now + days * 86_400_000,
  windows: {
    source: 'term',
    anchor: 0,
    limits: Object.fromEntries(['5h', 'day', 'week', 'month'].map((name) => [name, parseUsd('900000')])),
  },
});
const pooled: Funds = {
  ...rich,
  pool: { grants: [grantOf('one', 1), grantOf('two', 20), grantOf('three', 25)], spent: new Map([['x', money(5n)]]) },
};

const list = { input: parseUsd('2.5'), cache_read: parseUsd('0.25'), output: parseUsd('15') };
const flat = flatBook(list, 'v');
const tiered: PriceBook = [
  new PriceVersion({
    name: 'v',
    base: { ...list, web_search: parseUsd('0.01') },
    tiers: [
      { name: '>272k', above: 272_000, price: { input: parseUsd('5'), output: parseUsd('22.5') } },
      { name: 'flex', service: 'flex', times: parseRatio('0.5') },
      { name: 'priority', service: 'priority', times: parseRatio('2') },
    ],
  }),
];

interface Case {
  readonly funds?: Funds;
  readonly book?: PriceBook;
  readonly context?: PriceContext;
  readonly ratio?: Ratio;
  readonly cost?: PriceBook;
}

async function measure(name: string, { funds = rich, book = flat, context = {}, ratio = one, cost }: Case) {
  const { reservations, turn } = await busyReservations(funds);
  const target = { provider: 'vendor', model: 'm', weight: 0 };
  const entry = { targets: [target], ...(cost === undefined ? {} : { cost }) } as unknown as Model;
  const fixed = { id: 'x', accountId: 'a', keyId: 'k', model: 'm', at: now, allowance: oneTool, entry };
  const once = (index: number) => {
    const size = { inputTokens: 1_000 + (index & 1_023), outputTokens: 4_096 };
    const terms: Terms = { ...fixed, ...size, prices: book[0]!, context, ratio };
    const hold = reservations.create(terms) as Hold;
    const attempts = [newAttempt()];
    void reservations.sent(hold, attempts[0]);
    attempts[0]!.result = 'answered';
    const report = reportOf(index);
    const sent = sentAttempts(hold);
    const requested = { inputTokens: size.inputTokens, maxOutputTokens: undefined, choices: 1 };
    const seen = { requested, size: unknownSize, seenOutput: hold.seenOutput, unpaid: hold.unpaid };
    const verdict = judge({ attempts, sent, report, outcome: 'complete', ...seen });
    reservations.settle(hold, verdict, share(attemptNotes(attempts, sent), attempts, verdict, terms));
    if (index % callsOfTurn === 0) turn();
  };
  for (let index = 0; index < runs; index++) once(index);
  const nanoseconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < runs; index++) once(index);
    nanoseconds.push(Number(process.hrtime.bigint() - start) / runs);
  }
  nanoseconds.sort((left, right) => left - right);
  const [best, median] = [nanoseconds[0]!, nanoseconds[rounds >> 1]!].map((each) => each.toFixed(0).padStart(6));
  process.stdout.write(`${name.padEnd(46)} median ${median} ns, best ${best} ns\n`);
}

function newAttempt(): Attempt {
  const names = { provider: 'vendor', model: 'm', credential: 'c', protocol: 'chat' };
  const open = { status: undefined, durationMs: undefined, error: undefined };
  return { number: 1, ...names, startedAt: now, result: 'running', ...open };
}

function reportOf(index: number): UsageReport {
  const usage = { input: 900 + (index & 1_023), cache_read: 100, output: 300, reasoning: 20 };
  return { usage, estimated: false, terminal: true, upstreamId: 'up', finish: 'stop' };
}

const ratio = parseRatio('1.6');
await measure('one price', {});
await measure('one price, ratio', { ratio });
await measure('tiers, ratio', { book: tiered, ratio });
const context = { services: { tier: 'priority' } };
await measure('tiers, service, ratio, own cost', { book: tiered, context, ratio, cost: flat });
await measure('the same, three grants with four windows each', {
  funds: pooled,
  book: tiered,
  context,
  ratio,
  cost: flat,
});
