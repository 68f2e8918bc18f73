/** What a hold and its settlement cost beside the journal: `node --import tsx tests/bench/hold.ts`. Prints nanoseconds for both together. */
import { one, oneTool, parseRatio, parseUsd, type Ratio, zero } from '../../core/money.ts';
import { flatBook, type PriceBook, type PriceContext, PriceVersion } from '../../core/prices.ts';
import type { Usage } from '../../core/usage.ts';
import type { Model } from '../../core/vocabulary.ts';
import { Desk, type DeskOptions } from '../../plugins/billing/desk.ts';
import type { Hold, Terms } from '../../plugins/billing/hold.ts';
import type { AttemptNote } from '../../plugins/billing/records.ts';

const runs = 200_000;
const rounds = 9;

/** Journal, backlog and purses that do nothing: what is left is the desk's own work. */
function idleDesk(): Desk {
  let sequence = 0;
  const purse = { upkeepAt: Number.POSITIVE_INFINITY };
  const parts = {
    journal: { accepting: () => true, append: () => ++sequence, writtenSequence: 0 },
    backlog: { rows: 0, bytes: 0, post: () => {}, postEnd: () => {} },
    purses: { find: () => purse, covers: () => true, use: () => purse, release: () => {} },
    flusher: { shutOut: false },
    clock: { now: () => 1_800_000_000_000, monotonic: () => 0 },
    log: {},
    stepTokens: 4_096,
    backlogLimit: 1_000_000,
  };
  return new Desk(parts as unknown as DeskOptions);
}

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
const attempt = { number: 1, provider: 'vendor', model: 'm', credential: 'c', protocol: 'chat', startedAt: 0 };
const notes: AttemptNote[] = [{ ...attempt, result: 'answered', bearer: 'client' }];
const shares = { notes, absorbed: zero };

function measure(name: string, book: PriceBook, context: PriceContext, ratio: Ratio, cost?: PriceBook): void {
  const desk = idleDesk();
  const target = { provider: 'vendor', model: 'm', weight: 0 };
  const entry = { targets: [target], ...(cost === undefined ? {} : { cost }) } as unknown as Model;
  const fixed = { id: 'x', accountId: 'a', keyId: 'k', model: 'm', at: 0, allowance: oneTool, entry };
  const once = (index: number) => {
    const size = { inputTokens: 1_000 + (index & 1_023), outputTokens: 4_096 };
    const terms: Terms = { ...fixed, ...size, prices: book[0]!, context, ratio };
    const usage: Usage = { input: 900 + (index & 1_023), cache_read: 100, output: 300, reasoning: 20 };
    const verdict = { kind: 'SETTLE', reason: 'answered', usage, estimated: false, terminal: true } as const;
    desk.end(desk.hold(terms) as Hold, verdict, shares);
  };
  for (let index = 0; index < runs; index++) once(index);
  const nanoseconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < runs; index++) once(index);
    nanoseconds.push(Number(process.hrtime.bigint() - start) / runs);
  }
  nanoseconds.sort((left, right) => left - right);
  const [best, median] = [nanoseconds[0]!, nanoseconds[rounds >> 1]!].map((one) => one.toFixed(0).padStart(6));
  process.stdout.write(`${name.padEnd(34)} median ${median} ns, best ${best} ns\n`);
}

const ratio = parseRatio('1.6');
measure('one price', flat, {}, one);
measure('one price, ratio', flat, {}, ratio);
measure('tiers, ratio', tiered, {}, ratio);
measure('tiers, service, ratio, own cost', tiered, { services: { tier: 'priority' } }, ratio, flat);
