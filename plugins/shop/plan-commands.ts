/** Commands about plans. */

import type { Command, CommandResult } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { Accounts } from '../common/domain/accounts.ts';
import type { Pool } from '../common/domain/ledger.ts';
import { formatUsd, type Ratio, timesExactly, zero } from '../common/domain/money.ts';
import type { PlanOffer, Plans, Shop } from '../common/domain/plans.ts';
import {
  accountOf,
  columns,
  spanOf,
  spanText,
  textOf,
  timeText,
  type Values,
} from '../common/kit/commands/arguments.ts';
import { enterPlan, offerNamed } from './sale.ts';

export interface PlanTools {
  readonly host: Host;
  readonly shop: Shop;
  readonly plans: Plans;
  readonly accounts: Accounts;
  readonly pool: Pool;
}

export function planCommands(tools: PlanTools): Command[] {
  return [
    {
      name: 'plans list',
      summary: 'Lists the plans on offer.',
      run: async () => listPlans(tools.plans),
    },
    {
      name: 'plans buy',
      summary: 'Buys a plan from the balance of an account.',
      arguments: ['<plan>'],
      options: {
        '--account <name>': 'account that pays and gets the plan, by name or id',
        '--reference <text>': 'names the purchase: a second one of the same reference changes nothing',
      },
      run: (values) => buy(tools, values),
    },
    {
      name: 'plans give',
      summary: 'Puts an account on a plan without a price; one that runs already is extended, another one ends now.',
      arguments: ['<plan>'],
      options: {
        '--account <name>': 'account that gets the plan, by name or id',
        '--lasts <time>': 'how long, such as 30d; without it as long as it is sold for',
      },
      run: (values) => give(tools, values),
    },
  ];
}

function listPlans(plans: Plans): CommandResult {
  const offers = plans.list().map(({ name }) => plans.offer(name)!);
  const json = offers.map((offer) => ({
    name: offer.name,
    default: offer.name === plans.default,
    price: formatUsd(offer.price),
    grant: offer.grant && { amount: formatUsd(offer.grant.amount), every: offer.grant.every },
    windows: Object.fromEntries(windowsOf(offer)),
    lastsMs: offer.durationMs,
    renew: offer.renew,
    limits: offer.limits,
    models: offer.models && [...offer.models],
    multiplier: offer.multiplier && `${offer.multiplier.numerator}/${offer.multiplier.denominator}`,
  }));
  const rows = offers.map((offer) => [
    offer.name === plans.default ? `${offer.name} (default)` : offer.name,
    formatUsd(offer.price),
    offer.grant === undefined ? '' : `${formatUsd(offer.grant.amount)} a ${offer.grant.every}`,
    windowsOf(offer)
      .map(([name, limit]) => `${limit} in ${name}`)
      .join(', '),
    termText(offer),
    offer.multiplier === undefined ? '1.00' : ratioText(offer.multiplier),
    Object.entries(offer.limits)
      .map(([name, limit]) => `${name} ${limit}`)
      .join(', '),
    offer.models === undefined ? 'all' : [...offer.models].join(', '),
  ]);
  return {
    json,
    text: columns(['PLAN', 'PRICE', 'GRANT', 'WINDOWS', 'LASTS', 'MULTIPLIER', 'LIMITS', 'MODELS'], rows),
  };
}

/** The term that `endOf` computes, as text. */
function termText({ durationMs: lastsMs, grant, price, renew }: PlanOffer): string {
  const ends = lastsMs !== undefined || (grant !== undefined && price > 0n);
  if (!ends) return 'for good';
  const length = lastsMs === undefined ? `a ${grant!.every}` : spanText(lastsMs);
  return renew ? `${length}, renewed` : length;
}

/** `1.60`; configuration takes six decimals at most, so that it comes out exact. */
function ratioText(ratio: Ratio): string {
  const billionths = timesExactly(1_000_000_000n, ratio);
  return billionths === undefined ? `${ratio.numerator}/${ratio.denominator}` : formatUsd(billionths);
}

function windowsOf({ windows = {} }: PlanOffer): [string, string][] {
  return Object.entries(windows).flatMap(([name, limit]) => (limit === undefined ? [] : [[name, formatUsd(limit)]]));
}

async function buy({ host, shop, accounts }: PlanTools, values: Values): Promise<CommandResult> {
  const plan = textOf(values, 'plan');
  if (plan === undefined) throw invalid('Name the plan.', 'plan');
  const account = await accountOf(accounts, values);
  const reference = textOf(values, 'reference') ?? `command:${host.random.bytes(16).toString('hex')}`;
  const { price, endsAt, balance } = await shop.buy(account.id, plan, reference);
  const ends = timeText(endsAt, 'never');
  return {
    json: { account: account.name, plan, price: formatUsd(price), ends, balance: formatUsd(balance) },
    text: `${account.name} is on plan ${plan} for ${formatUsd(price)} USD; it ends: ${ends}; the balance is ${formatUsd(balance)} USD.`,
  };
}

async function give(tools: PlanTools, values: Values): Promise<CommandResult> {
  const { accounts, plans, pool } = tools;
  const offer = offerNamed(plans, textOf(values, 'plan') ?? '');
  const lengthMs = spanOf(values, 'lasts');
  const account = await accountOf(accounts, values);
  const endsAt = await pool.transact(account.id, zero, (posting) => enterPlan(tools, posting, offer, lengthMs));
  const ends = timeText(endsAt, 'never');
  return {
    json: { account: account.name, plan: offer.name, ends },
    text: `${account.name} is on plan ${offer.name}; it ends: ${ends}.`,
  };
}
