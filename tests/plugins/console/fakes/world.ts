/** Rows of several days that look like a small gateway's life: the same ones each time, up to the moment of asking. */

import type { AccountView, KeyView } from '../../../../plugins/common/domain/admin/accounts.ts';
import type { AttemptView, ChargeView, LedgerRow } from '../../../../plugins/common/domain/admin/ledger.ts';
import type { RequestView } from '../../../../plugins/common/domain/admin/requests.ts';
import { formulaOf } from '../../../../plugins/common/domain/formula.ts';
import { cost, money, parseRatio, parseUsd } from '../../../../plugins/common/domain/money.ts';
import type { MemberRole } from '../../../../plugins/common/domain/organizations/rights.ts';
import type { Price } from '../../../../plugins/common/domain/usage.ts';
import { projectIdOf } from './lists.ts';

export const minuteMs = 60_000;
export const dayMs = 24 * 60 * minuteMs;

export interface FakeModel {
  readonly id: string;
  readonly ownedBy: string;
  readonly displayName: string;
  readonly provider: string;
  readonly upstream: string;
  readonly price: Price;
  readonly kind: 'chat' | 'image' | 'video';
  readonly firstByteMs: number;
}
const dollars = (perMillion: string) => parseUsd(perMillion) as bigint;
const chat = (
  [id, ownedBy, displayName, provider]: readonly [string, string, string, string],
  prices: Price,
  firstByteMs: number,
): FakeModel => ({ id, ownedBy, displayName, provider, upstream: id, price: prices, kind: 'chat', firstByteMs });

export const models: readonly FakeModel[] = [
  chat(
    ['gpt-5.4', 'openai', 'GPT-5.4', 'openai'],
    { input: dollars('2.50'), cache_read: dollars('0.25'), output: dollars('15') },
    620,
  ),
  chat(
    ['gpt-5.4-mini', 'openai', 'GPT-5.4 mini', 'openai'],
    { input: dollars('0.75'), cache_read: dollars('0.075'), output: dollars('4.50') },
    310,
  ),
  chat(
    ['claude-sonnet-5', 'anthropic', 'Claude Sonnet 5', 'anthropic'],
    { input: dollars('3'), cache_read: dollars('0.30'), output: dollars('15') },
    840,
  ),
  chat(
    ['claude-haiku-4-5', 'anthropic', 'Claude Haiku 4.5', 'anthropic'],
    { input: dollars('1'), cache_read: dollars('0.10'), output: dollars('5') },
    420,
  ),
  chat(
    ['gemini-3.5-flash', 'google', 'Gemini 3.5 Flash', 'google'],
    { input: dollars('0.50'), output: dollars('3') },
    380,
  ),
  { ...chat(['gpt-image-2', 'openai', 'GPT Image 2', 'openai'], { image: dollars('0.04') }, 9_000), kind: 'image' },
  {
    ...chat(['grok-imagine-video', 'xai', 'Grok Imagine Video', 'xai'], { second: dollars('0.05') }, 30_000),
    kind: 'video',
  },
];

export interface World {
  readonly now: () => number;
  readonly accounts: AccountView[];
  readonly keys: KeyView[];
  readonly requests: RequestView[];
  readonly charges: (ChargeView & { readonly attempts: readonly AttemptView[] })[];
  readonly ledger: LedgerRow[];
  /** Makes an id that is not yet used. */
  readonly nextId: (prefix: string) => string;
  /** The role that everybody has in their account. */
  memberRole: MemberRole;
}

/** A small generator: rows must be the same each time. */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const uuid = (number: number) => `01980000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
const names = [
  'client@example.test 14d96147be60f',
  'ada-labs',
  'operator@example.test 24d96147be60f',
  'blue-heron',
  'cobalt',
  'delta-works',
  'evergreen',
  'foxglove',
  'granite',
  'harbor',
  'indigo',
  'juniper',
];

export const clientAccount = uuid(1);

interface Rows extends Pick<World, 'accounts' | 'keys' | 'requests' | 'charges' | 'ledger'> {
  /** Number of used ids. */
  readonly count: number;
}

/** Rows are replaced and never changed in place, so a file's tests can all begin with the same ones. */
const made = new Map<string, Rows>();

export function makeWorld(now: () => number, days = 9, perDay = 90): World {
  const which = `${now()} ${days} ${perDay}`;
  const rows = made.get(which) ?? makeRows(now, days, perDay);
  made.set(which, rows);
  let { count } = rows;
  return {
    now,
    accounts: [...rows.accounts],
    keys: [...rows.keys],
    requests: [...rows.requests],
    charges: [...rows.charges],
    ledger: [...rows.ledger],
    nextId: () => uuid(count++),
    memberRole: 'owner',
  };
}

function makeRows(now: () => number, days: number, perDay: number): Rows {
  let count = 10_000;
  const world: World = {
    now,
    accounts: names.map((name, index) => makeAccount(name, index, now())),
    keys: [],
    requests: [],
    charges: [],
    ledger: [],
    nextId: () => uuid(count++),
    memberRole: 'owner',
  };
  for (const account of world.accounts) addKeys(world, account);
  addCredits(world, days);
  addTraffic(world, days, perDay);
  return { ...world, count };
}

function makeAccount(name: string, index: number, now: number): AccountView {
  return {
    id: uuid(index + 1),
    name,
    plan: index % 3 === 0 ? 'pro' : 'free',
    planEndsAt: index % 3 === 0 ? now + (index + 5) * dayMs : undefined,
    multiplier: index === 4 ? '0.9' : undefined,
    disabled: index === 9,
    retention: undefined,
    createdAt: now - (60 - index) * dayMs,
  };
}

function addKeys(world: World, account: AccountView): void {
  const base = { accountId: account.id, createdAt: account.createdAt + dayMs, lastUsedAt: world.now() - 3 * minuteMs };
  const key = (name: string, more: Partial<KeyView> = {}): KeyView => {
    const id = world.nextId('key');
    return { id, name, prefix: `sk-${id.slice(-6)}`, revokedAt: undefined, replaced: [], ...base, ...more };
  };
  world.keys.push(key('laptop', { project: account.id === clientAccount ? 'web shop' : undefined }));
  if (account.id !== clientAccount) return;
  world.keys.push(
    key('build server', {
      project: 'builds',
      models: ['gpt-5.4-mini', 'claude-haiku-4-5'],
      addresses: ['203.0.113.0/24'],
      limits: { rpm: 60 },
      cap: { amount: parseUsd('5'), every: 'day' },
      expiresAt: world.now() + 30 * dayMs,
    }),
    key('old phone', { revokedAt: world.now() - 2 * dayMs, lastUsedAt: world.now() - 2 * dayMs }),
  );
}

function addLedger(world: World, row: Omit<LedgerRow, 'seq' | 'balanceAfter'>): void {
  const last = world.ledger.findLast(({ accountId }) => accountId === row.accountId);
  const balanceAfter = money((last?.balanceAfter ?? 0n) + row.change);
  world.ledger.push({ ...row, seq: String(world.ledger.length + 1), balanceAfter });
}

function addCredits(world: World, days: number): void {
  const at = world.now() - days * dayMs;
  for (const { id: accountId } of world.accounts) {
    const common = { accountId, requestId: undefined };
    addLedger(world, {
      ...common,
      kind: 'CREDIT',
      reference: `grant:${accountId}`,
      reason: 'plan',
      change: parseUsd('25'),
      at,
    });
    addLedger(world, {
      ...common,
      kind: 'CREDIT',
      reference: `topup:${accountId}`,
      reason: 'top-up by bank',
      change: parseUsd('40'),
      at: at + minuteMs,
    });
  }
}

function addTraffic(world: World, days: number, perDay: number): void {
  const next = chance(7);
  const start = world.now() - days * dayMs;
  const gap = dayMs / perDay;
  for (let at = start + gap; at < world.now() - 5_000; at += gap * (0.4 + 1.2 * next())) {
    addRequest(world, Math.floor(at), next);
  }
}

function pick<T>(list: readonly T[], next: () => number): T {
  return list[Math.min(list.length - 1, Math.floor(next() * next() * list.length))]!;
}

/** One more request with its charge and its ledger row. */
export function addRequest(world: World, at: number, next: () => number): RequestView {
  const account = pick(world.accounts, next);
  const key = world.keys.find(({ accountId }) => accountId === account.id)!;
  const model = pick(models, next);
  const fate = next();
  const failed = fate > 0.985 ? 502 : fate > 0.96 ? 429 : fate > 0.945 ? 400 : undefined;
  const usage = usageFor(model, next);
  const firstByteMs = Math.round(model.firstByteMs * (0.6 + 1.4 * next() * next()));
  const row: RequestView = {
    id: world.nextId('request'),
    receivedAt: at,
    operation: model.kind === 'chat' ? (model.ownedBy === 'anthropic' ? 'messages' : 'chat') : 'images',
    protocol: model.ownedBy === 'anthropic' ? 'messages' : 'chat',
    accountId: account.id,
    keyId: key.id,
    projectId: key.project && projectIdOf(key.project),
    model: model.id,
    provider: failed === 429 || failed === 400 ? undefined : model.provider,
    upstreamModel: model.upstream,
    upstreamId: `up_${at.toString(36)}`,
    streamed: next() > 0.3,
    status: failed ?? 200,
    outcome: 'complete',
    errorKind:
      failed === undefined
        ? undefined
        : failed === 502
          ? 'upstream_failed'
          : failed === 429
            ? 'rate_limited'
            : 'invalid_request',
    errorCode: failed === 429 ? 'rpm' : undefined,
    attempts: failed === 502 ? 3 : next() > 0.95 ? 2 : 1,
    firstByteMs: failed === undefined ? firstByteMs : undefined,
    totalMs: failed === undefined ? firstByteMs + Math.round(next() * 4_000) : 40,
    bytesIn: 900 + Math.round(next() * 4_000),
    bytesOut: 400 + Math.round(next() * 9_000),
    usage: failed === undefined ? usage : undefined,
    usageEstimated: failed === undefined ? false : undefined,
    finish: failed === undefined ? 'stop' : undefined,
    dropped: next() > 0.9 ? ['logit_bias'] : [],
    story: [
      { atMs: 1, by: 'plans', text: 'on the plan "pro"', kind: 'plans.plan', values: ['pro'] },
      {
        atMs: 2,
        by: 'billing',
        text: '0.12 USD set aside for about 900 tokens of prompt and up to 500 of answer',
        kind: 'billing.held',
        values: ['120000000', 900, 500, null, null],
      },
      {
        atMs: 3,
        by: 'lockbox',
        text: `first target ${model.provider}/${model.upstream}`,
        kind: 'lockbox.first',
        values: [],
      },
    ],
    vendorWords: [{ attempt: 1, message: 'the words of a vendor', requestId: 'vendor-request-1' }],
  };
  world.requests.push(row);
  if (failed === undefined) charge(world, row, model, usage);
  return row;
}

function usageFor(model: FakeModel, next: () => number): Record<string, number> {
  if (model.kind === 'image') return { image: 1 };
  if (model.kind === 'video') return { second: 6 };
  const input = 300 + Math.round(next() * 9_000);
  return { input, cache_read: Math.round(input * next()), output: 40 + Math.round(next() * 1_500) };
}

function charge(world: World, row: RequestView, model: FakeModel, usage: Record<string, number>): void {
  const accountId = row.accountId!;
  const ratio = world.accounts.find(({ id }) => id === accountId)?.multiplier ?? '1';
  const amount = cost(usage, model.price, parseRatio(ratio));
  const ownCost = money((amount * 7n) / 10n);
  const at = row.receivedAt + row.totalMs;
  world.charges.push({
    requestId: row.id,
    accountId,
    keyId: row.keyId!,
    project: row.projectId,
    model: model.id,
    provider: model.provider,
    at,
    cost: amount,
    ownCost,
    refunded: money(0n),
    usage,
    estimated: false,
    ratio,
    priceVersion: '2026-09',
    tier: undefined,
    formula: formulaOf(usage, model.price, parseRatio(ratio)),
    servedBy: undefined,
    held: parseUsd('0.12'),
    attempts: Array.from({ length: row.attempts }, (_, index) => attemptOf(row, model, index + 1)),
  });
  const charge = { kind: 'CHARGE', reference: undefined, reason: undefined, requestId: row.id, at };
  addLedger(world, { ...charge, accountId, change: money(-amount) });
}

function attemptOf(row: RequestView, model: FakeModel, number: number): AttemptView {
  const last = number === row.attempts;
  return {
    number,
    provider: model.provider,
    model: model.upstream,
    credential: `${model.provider}#${number}`,
    protocol: row.protocol!,
    startedAt: row.receivedAt + number * 4,
    result: last ? 'answered' : 'refused',
    status: last ? 200 : 429,
    durationMs: last ? row.totalMs : 90,
    error: last ? undefined : 'rate limited',
    absorbed: money(0n),
    borneBy: last ? 'client' : undefined,
  };
}
