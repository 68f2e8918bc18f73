/** Pool, ledger, plans, shop, codes and tasks over the fake world. */

import { GatewayError } from '../../../../core/contract/errors.ts';
import type { CodeView, ShopAdmin } from '../../../../plugins/common/domain/admin/shop.ts';
import type { TaskAdmin, TaskView } from '../../../../plugins/common/domain/admin/tasks.ts';
import type { Ledger, Pool } from '../../../../plugins/common/domain/ledger.ts';
import { type Money, money, parseUsd } from '../../../../plugins/common/domain/money.ts';
import type { PlanOffer, Plans, Shop } from '../../../../plugins/common/domain/plans.ts';
import { paged } from './lists.ts';
import { balanceOf } from './rows.ts';
import { dayMs, minuteMs, type World } from './world.ts';

const offers: readonly PlanOffer[] = [
  {
    name: 'free',
    limits: { rpm: 20, tpm: 40_000, concurrency: 2 },
    models: undefined,
    multiplier: undefined,
    grant: { amount: parseUsd('1'), every: 'month' },
    price: money(0n),
    durationMs: undefined,
    renew: false,
  },
  {
    name: 'pro',
    limits: { rpm: 600, tpm: 2_000_000, concurrency: 50 },
    models: undefined,
    multiplier: undefined,
    grant: { amount: parseUsd('25'), every: 'month' },
    windows: { '5h': parseUsd('5'), week: parseUsd('15') },
    price: parseUsd('20'),
    durationMs: undefined,
    renew: true,
  },
  {
    name: 'studio',
    limits: { rpm: 2_000, tpm: 8_000_000, concurrency: 200 },
    models: undefined,
    multiplier: { numerator: 9n, denominator: 10n },
    grant: { amount: parseUsd('120'), every: 'month' },
    price: parseUsd('90'),
    durationMs: 30 * dayMs,
    renew: true,
  },
];

export const fakePlans: Plans = {
  default: 'free',
  terms: (name) => offers.find((offer) => offer.name === name) ?? offers[0]!,
  has: (name) => offers.some((offer) => offer.name === name),
  list: () => offers,
  offer: (name) => offers.find((offer) => offer.name === name),
};

/** Pool and ledger keep references: a second one of the same name changes nothing. */
export function fakePool(world: World): { pool: Pool; ledger: Ledger; post: typeof post } {
  function post(accountId: string, kind: string, amount: bigint, entry: { reason: string; reference: string }): Money {
    if (world.ledger.some((row) => row.reference === entry.reference)) return balanceOf(world, accountId);
    const balanceAfter = money(balanceOf(world, accountId) + amount);
    if (balanceAfter < 0n) throw new GatewayError('insufficient_balance', 'The balance does not cover this.');
    const row = { accountId, kind, requestId: undefined, change: money(amount), balanceAfter };
    world.ledger.push({ ...row, ...entry, seq: String(world.ledger.length + 1), at: world.now() });
    return balanceAfter;
  }
  const pool: Pool = {
    applyDue: async () => undefined,
    admitMoney: async () => undefined,
    view: async (accountId) => viewOf(world, accountId),
    debit: async (accountId, amount, entry) => post(accountId, 'DEBIT', -amount, entry),
    refundCredit: async (accountId, _of, amount, entry) => post(accountId, 'PAYOUT', -amount, entry),
    async refundRequest(accountId, requestId, amount, entry) {
      const index = world.charges.findIndex((charge) => charge.requestId === requestId);
      const charge = world.charges[index]!;
      const refunded = money(charge.refunded + amount);
      if (refunded > charge.cost) throw new GatewayError('conflict', 'More than was paid cannot be given back.');
      const balance = post(accountId, 'REFUND', amount, entry);
      world.charges[index] = { ...charge, refunded };
      return balance;
    },
    async transact(accountId, _atMost, work) {
      return work({
        orm: undefined as never,
        accountId,
        at: world.now(),
        balance: balanceOf(world, accountId),
        credit: async (amount, entry) => post(accountId, 'CREDIT', amount, entry) >= 0n,
        purchase: async (price, entry) => post(accountId, 'PURCHASE', -price, entry) >= 0n,
        term: async () => undefined,
        beginTerm: async () => undefined,
        extendTerm: async () => undefined,
      });
    },
    onTermEnded: () => undefined,
  };
  const ledger: Ledger = {
    credit: async (accountId, amount, options) => post(accountId, 'CREDIT', amount, options),
    balance: async (accountId) => balanceOf(world, accountId),
    endOf: async () => 'charged',
    safe: async () => {},
  };
  return { pool, ledger, post };
}

function viewOf(world: World, accountId: string): Awaited<ReturnType<Pool['view']>> {
  const balance = balanceOf(world, accountId);
  const account = world.accounts.find(({ id }) => id === accountId);
  const now = world.now();
  const half = money(balance / 2n);
  const onPro = account?.plan === 'pro';
  const grant = (kind: string, remaining: Money, amount: Money, endsAt: number | undefined) => ({
    id: `${kind}-1`,
    kind,
    reason: kind === 'plan' ? 'plan pro' : 'top-up by bank',
    reference: `${kind}:${accountId}`,
    amount,
    remaining,
    createdAt: now - 9 * dayMs,
    expiresAt: endsAt,
  });
  const [held, blocked] = [parseUsd('0.12'), parseUsd('0.4')];
  return {
    balance: money(balance - held),
    spendable: money(balance - held - blocked),
    held,
    blocked,
    grants: [
      grant('plan', half, parseUsd('25'), account?.planEndsAt),
      grant('top-up', money(balance - half), parseUsd('40'), undefined),
    ],
    windows: onPro
      ? [
          {
            name: '5h',
            limit: parseUsd('5'),
            spent: parseUsd('1.27'),
            startsAt: now - 90 * minuteMs,
            endsAt: now + 210 * minuteMs,
          },
          {
            name: 'week',
            limit: parseUsd('15'),
            spent: parseUsd('9.8'),
            startsAt: now - 3 * dayMs,
            endsAt: now + 4 * dayMs,
          },
        ]
      : [],
    term: onPro ? { id: 'term-1', plan: 'pro', startsAt: now - 9 * dayMs, endsAt: account?.planEndsAt } : undefined,
  };
}

export function fakeShop(world: World, post: ReturnType<typeof fakePool>['post']): { shop: Shop; admin: ShopAdmin } {
  const codes: CodeView[] = [];
  const secrets = new Map<string, string>();
  const used: { id: string; codeId: string; accountId: string; at: number }[] = [];
  const admin: ShopAdmin = {
    offers: () => offers.filter(({ price }) => price > 0n),
    codes: async ({ batch }, page) =>
      paged(codes.filter((code) => batch === undefined || code.batch === batch).toReversed(), page),
    async batches() {
      const names = [...new Set(codes.map(({ batch }) => batch))];
      return names.map((batch) => {
        const members = codes.filter((code) => code.batch === batch);
        const uses = members.reduce((sum, code) => sum + code.uses, 0);
        return { batch, codes: members.length, uses, createdAt: members[0]!.createdAt };
      });
    },
    async createCodes({ batch = `batch-${codes.length}`, count, ...terms }) {
      const reply = Array.from({ length: count }, () => {
        const id = world.nextId('code');
        const code = `GIFT-${id.slice(-12).toUpperCase()}-${codes.length}`;
        secrets.set(code, id);
        codes.push({
          ...terms,
          id,
          prefix: code.slice(0, 9),
          batch,
          uses: 0,
          revokedAt: undefined,
          createdAt: world.now(),
        });
        return code;
      });
      return { batch, codes: reply };
    },
    redemptions: async (codeId, page) => paged(used.filter((one) => one.codeId === codeId).toReversed(), page),
    async revokeCodes(named) {
      let revoked = 0;
      codes.forEach((code, index) => {
        if ((code.id !== named && code.batch !== named) || code.revokedAt !== undefined) return;
        codes[index] = { ...code, revokedAt: world.now() };
        revoked++;
      });
      return revoked;
    },
  };
  const shop: Shop = {
    async buy(accountId, plan, reference) {
      const offer = fakePlans.offer(plan);
      if (offer === undefined) throw new GatewayError('not_found', `There is no plan "${plan}".`, { field: 'plan' });
      const balance = post(accountId, 'PURCHASE', -offer.price, {
        reason: `plan ${plan}`,
        reference: `plan:${reference}`,
      });
      const endsAt = world.now() + 30 * dayMs;
      const index = world.accounts.findIndex(({ id }) => id === accountId);
      world.accounts[index] = { ...world.accounts[index]!, plan, planEndsAt: endsAt };
      return { plan, price: offer.price, endsAt, balance };
    },
    async redeem(accountId, text) {
      const index = codes.findIndex(({ id }) => id === secrets.get(text));
      const code = codes[index];
      if (code === undefined || code.revokedAt !== undefined)
        throw new GatewayError('not_found', 'There is no such code.', { field: 'code' });
      if (code.uses >= code.maxUses) throw new GatewayError('conflict', 'This code is used up.', { field: 'code' });
      codes[index] = { ...code, uses: code.uses + 1 };
      used.push({ id: world.nextId('use'), codeId: code.id, accountId, at: world.now() });
      const amount = code.gift.kind === 'balance' ? code.gift.amount : money(0n);
      const balance = post(accountId, 'CREDIT', amount, { reason: 'code', reference: `code:${code.id}:${code.uses}` });
      return { amount, plan: undefined, endsAt: undefined, balance };
    },
  };
  return { shop, admin };
}

export function fakeTasks(world: World, accountId: string): TaskAdmin {
  const task = (number: number, more: Partial<TaskView>): TaskView => ({
    id: `task_${number}`,
    requestId: world.requests[number]?.id ?? `request-${number}`,
    accountId,
    kind: 'image',
    model: 'gpt-image-2',
    state: 'succeeded',
    progress: 100,
    prompt: 'A lighthouse made of paper, in the evening',
    createdAt: world.now() - number * 40 * minuteMs,
    completedAt: world.now() - number * 40 * minuteMs + 12_000,
    error: undefined,
    results: [],
    cancellable: false,
    ...more,
  });
  const other = world.accounts[1]!.id;
  const tasks = [
    task(1, { state: 'queued', progress: 0, completedAt: undefined, cancellable: true }),
    task(2, { kind: 'video', model: 'grok-imagine-video', state: 'running', progress: 42, completedAt: undefined }),
    task(3, { results: [{ url: '/console/mark.svg', mediaType: 'image/svg+xml', expiresAt: world.now() + dayMs }] }),
    task(4, { state: 'failed', error: { code: 'content_policy', message: 'The vendor refused this prompt.' } }),
    task(5, { accountId: other, prompt: 'A fox in a library' }),
  ];
  const find = (id: string, of: string | undefined) =>
    tasks.findIndex((row) => row.id === id && (of === undefined || row.accountId === of));
  return {
    async list({ accountId: of, kind, states }, page) {
      const rows = tasks
        .filter((row) => of === undefined || row.accountId === of)
        .filter((row) => kind === undefined || row.kind === kind)
        .filter((row) => states === undefined || states.includes(row.state));
      return paged(rows, page);
    },
    statesOf: async (orders) =>
      new Map(
        tasks
          .filter(({ requestId }) => orders.some((one) => one.requestId === requestId))
          .map((one) => [one.requestId, one.state]),
      ),
    find: async (id, of) => tasks[find(id, of)],
    async cancel(id, of) {
      const index = find(id, of);
      const row = tasks[index];
      if (row === undefined) throw new GatewayError('not_found', 'There is no such task.', { field: 'id' });
      if (!row.cancellable) throw new GatewayError('conflict', 'This task has begun already.', { field: 'id' });
      tasks[index] = { ...row, state: 'cancelled', cancellable: false, completedAt: world.now() };
    },
  };
}
