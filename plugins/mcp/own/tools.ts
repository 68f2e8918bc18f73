/** The gateway's own tools: what a call cost and why, what the account has used, which models there are and at what price. */
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { caller } from '../../common/domain/accounts.ts';
import { type LedgerQueries, ledgerQueries } from '../../common/domain/admin/ledger.ts';
import { pool } from '../../common/domain/ledger.ts';
import { catalog, type Model } from '../../common/domain/models.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { isServed, placementIn } from '../../common/domain/organizations/placement.ts';
import { sheetOf } from '../../common/domain/pages/price-sheet.ts';
import { plan, plans } from '../../common/domain/plans.ts';
import { multipliers, planRatio, ratioOf } from '../../common/domain/price-ratio.ts';
import { providers, translations } from '../../common/domain/upstreams.ts';
import { uuidForm } from '../../common/kit/paging.ts';

/** A tool with the rights of the key that calls it. */
export interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly properties: Record<string, object>;
  /** It changes something; absent: it only reads. */
  readonly changes?: true;
  readonly required?: readonly string[];
  /** Throws a Failed for what the tool reports as its failure. */
  run(given: Readonly<Record<string, unknown>>, exchange: Exchange, host: Host): Promise<object>;
}

/** A tool's own failure, in words for its caller. */
export class Failed extends Error {
  override readonly name = 'Failed';
}

const dayMs = 86_400_000;
const mostModels = 200;
const mostGroups = 50;

export const ownTools: readonly OwnTool[] = [
  {
    name: 'call_cost',
    description: 'What a call of this account has cost, and the sum that it was charged by.',
    properties: { request_id: { type: 'string', description: 'The header x-request-id of its answer.' } },
    required: ['request_id'],
    run: ({ request_id: id }, exchange, host) => callCost(id, exchange.get(caller).accountId, ledgerOf(host)),
  },
  {
    name: 'my_usage',
    description: 'The balance of this account, and what it has spent today and this month (UTC), by models.',
    properties: {},
    run: (_given, exchange, host) => usage(exchange.get(caller).accountId, host),
  },
  {
    name: 'models_and_prices',
    description: 'The models that this key may call, with the prices that its account pays in USD.',
    properties: { search: { type: 'string', description: 'A part of the name; absent: all models.' } },
    run: async ({ search }, exchange, host) => models(search, exchange, host),
  },
];

function ledgerOf(host: Host): LedgerQueries {
  const found = host.find(ledgerQueries);
  if (found === undefined) throw new Failed('This gateway keeps no money.');
  return found;
}

async function callCost(id: unknown, accountId: string, ledger: LedgerQueries): Promise<object> {
  const charge = typeof id === 'string' && uuidForm.test(id) ? await ledger.charge(id, accountId) : undefined;
  if (charge === undefined)
    throw new Failed('No charge of this account has this id: the call was free, has failed, or was just made.');
  const { requestId, model, at, cost, refunded, estimated, formula, ratio, priceVersion, servedBy } = charge;
  return {
    ...{ request_id: requestId, model, at: new Date(at).toISOString(), cost: formatUsd(cost), currency: 'USD' },
    ...{ refunded: formatUsd(refunded), why: formula, usage: charge.usage, estimated, ratio, price: priceVersion },
    ...(servedBy === undefined ? {} : { answered_by: servedBy }),
  };
}

async function usage(accountId: string, host: Host): Promise<object> {
  const ledger = ledgerOf(host);
  await host.find(pool)?.applyDue(accountId);
  const today = Math.floor(host.clock.now() / dayMs) * dayMs;
  const now = new Date(today);
  const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  const until = today + dayMs;
  const [balances, [ofDay], groups] = await Promise.all([
    ledger.balances([accountId]),
    ledger.spendBetween({ accountId }, [today, until]),
    ledger.spend({ accountId, from: month, until }, 'model', mostGroups),
  ]);
  const sum = groups.reduce((total, { cost }) => total + cost, 0n);
  return {
    ...{ currency: 'USD', balance: formatUsd(balances.get(accountId) ?? 0n) },
    today: { calls: ofDay?.requests ?? 0, cost: formatUsd(ofDay?.cost ?? 0n) },
    month: {
      cost: formatUsd(sum),
      models: groups.map(({ group, requests, cost }) => ({ model: group, calls: requests, cost: formatUsd(cost) })),
    },
  };
}

function models(search: unknown, exchange: Exchange, host: Host): object {
  const { models: ofKey, projectModels: ofProject, multiplier, plan: name } = exchange.get(caller);
  const ofPlan = exchange.find(plan)?.models;
  const sources = { multipliers: host.find(multipliers), plans: host.find(plans) };
  const ratio = planRatio(sources, name);
  const part = typeof search === 'string' ? search.toLowerCase() : '';
  const isServedHere = servedHere(exchange, host);
  const mayCall = (model: Model) =>
    [ofKey, ofProject, ofPlan].every((allowed) => allowed?.has(model.id) !== false) && isServedHere(model);
  const found = (host.find(catalog)?.list() ?? []).flatMap((model) => {
    const { id, kind, prices, multiplier: ofModel } = model;
    if (!id.toLowerCase().includes(part) || !mayCall(model)) return [];
    const sheet = sheetOf(prices, host.clock.now(), ratioOf({ plan: ratio, model: ofModel, account: multiplier }));
    if (sheet === undefined) return [];
    return {
      model: id,
      kind,
      prices: sheet.lines.map(({ class: of, per, yours }) => ({ class: of, per, usd: yours })),
    };
  });
  return { currency: 'USD', models: found.slice(0, mostModels), left_out: Math.max(0, found.length - mostModels) };
}

/** Whether the account, the key, its project and the plan leave a model a provider. */
function servedHere(exchange: Exchange, host: Host): (model: Model) => boolean {
  const placement = placementIn(exchange);
  const known = host.find(providers);
  if (placement === undefined || known === undefined) return () => true;
  const serving = { providers: known, translations: host.find(translations) };
  return (model) => isServed(placement, serving, model);
}
