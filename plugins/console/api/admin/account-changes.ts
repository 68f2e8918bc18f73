/** What operators change about accounts: money, plan, ratio, admission, keys. Each with a reason. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { priceFloor } from '../../../common/domain/models.ts';
import { type Money, parseRatio, zero } from '../../../common/domain/money.ts';
import type { PlanTerms } from '../../../common/domain/plans.ts';
import { accountAdmin, accounts, ledger, ledgerQueries, plans, pool } from '../../services.ts';
import { balanceOf } from '../home.ts';
import { keyJson, keyRow, overlapInput, rotatedJson, rotatedKey } from '../keys.ts';
import { projectInput } from '../projects.ts';
import { noRequest } from '../request-rows.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, need, referenceOf } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  done,
  hourMs,
  id,
  instantInput,
  isoOrNull,
  reasonInput,
  takes,
  usd,
  usdInput,
  usdText,
} from '../schemas.ts';
import { idempotencyHeader } from '../wallet.ts';
import { knownAccount } from './accounts.ts';

const one = z.object({ id });
const balance = answers(z.object({ balance: usd }));

const moneyRequest = {
  params: one,
  headers: idempotencyHeader,
  body: takes(z.strictObject({ amount: usdInput, reason: reasonInput })),
};

const credit = route('post', '/admin/accounts/{id}/credit', 'Add money to an account', balance, {
  params: one,
  headers: idempotencyHeader,
  body: takes(
    z.strictObject({
      amount: usdInput,
      reason: reasonInput,
      kind: z.enum(['top-up', 'promotion']).default('top-up'),
      expiresAt: instantInput.nullish().describe('When the rest of it expires.'),
    }),
  ),
});
const debit = route('post', '/admin/accounts/{id}/debit', 'Take money from an account', balance, moneyRequest);
const refund = route(
  'post',
  '/admin/requests/{id}/refund',
  'Give back what a request has cost, or a part of it',
  balance,
  moneyRequest,
);
const setPlan = route('post', '/admin/accounts/{id}/plan', 'Put an account on a plan', answers(done), {
  params: one,
  body: takes(
    z.strictObject({
      plan: z.string().min(1).max(100),
      endsAt: instantInput.nullish().describe('When the default plan takes its place.'),
      reason: reasonInput,
    }),
  ),
});
const setMultiplier = route(
  'post',
  '/admin/accounts/{id}/multiplier',
  "Set an account's own price ratio",
  answers(done),
  {
    params: one,
    body: takes(
      z.strictObject({
        multiplier: z
          .string()
          .regex(/^\d{1,4}(\.\d{1,6})?$/, 'must be a ratio such as 0.9')
          .nullable()
          .describe('null: 1.'),
        reason: reasonInput,
      }),
    ),
  },
);
const withReason = takes(z.strictObject({ reason: reasonInput }));
const disable = route('post', '/admin/accounts/{id}/disable', 'Refuse every call of an account', answers(done), {
  params: one,
  body: withReason,
});
const enable = route('post', '/admin/accounts/{id}/enable', 'Admit the calls of an account again', answers(done), {
  params: one,
  body: withReason,
});
const setProject = route(
  'post',
  '/admin/accounts/{id}/keys/{keyId}/project',
  'Put a key into a project, with its calls from now on; null takes it out',
  answers(keyRow),
  {
    params: one.extend({ keyId: id }),
    body: takes(z.strictObject({ project: projectInput.nullable(), reason: reasonInput })),
  },
);
const rotate = route(
  'post',
  '/admin/accounts/{id}/keys/{keyId}/rotate',
  "Give an account's key another secret, shown this once",
  answers(rotatedKey),
  {
    params: one.extend({ keyId: id }),
    body: takes(z.strictObject({ overlapHours: overlapInput, reason: reasonInput })),
  },
);
const revoke = route('delete', '/admin/accounts/{id}/keys/{keyId}', "Revoke an account's key", answers(keyRow), {
  params: one.extend({ keyId: id }),
  body: withReason,
});

export function accountChangeRoutes(services: ConsoleServices) {
  return new Routes(services)
    .action(credit, async ({ param, json: { amount, reason, kind, expiresAt }, c }) => {
      const { id: subject } = await knownAccount(services, param.id);
      const entry = { kind, reason, reference: referenceOf(c), expiresAt: expiresAt ?? undefined };
      const run = () => need(services, ledger).credit(subject, amount, entry);
      return moneyChange(services, subject, { action: 'account.credit', subject, reason, amount, run });
    })
    .action(debit, async ({ param, json: { amount, reason }, c }) => {
      const { id: subject } = await knownAccount(services, param.id);
      const run = () => need(services, pool).debit(subject, amount, { reason, reference: referenceOf(c) });
      return moneyChange(services, subject, { action: 'account.debit', subject, reason, amount, run });
    })
    .action(refund, async ({ param: { id: subject }, json: { amount, reason }, c }) => {
      const charge = await need(services, ledgerQueries).charge(subject, undefined);
      if (charge === undefined) throw noRequest();
      const entry = { reason, reference: referenceOf(c) };
      const run = () => need(services, pool).refundRequest(charge.accountId, subject, amount, entry);
      return moneyChange(services, charge.accountId, { action: 'request.refund', subject, reason, amount, run });
    })
    .action(setPlan, async ({ param, json: { plan, endsAt, reason } }) => {
      const { id: subject, ...before } = await knownAccount(services, param.id);
      if (!need(services, plans).has(plan))
        throw new GatewayError('invalid_request', `There is no plan "${plan}".`, { field: 'plan' });
      if (endsAt != null && endsAt <= services.clock.now())
        throw new GatewayError('invalid_request', 'A plan ends at a time to come.', { field: 'endsAt' });
      const run = () => changePlan(services, subject, need(services, plans).terms(plan), endsAt ?? undefined);
      const changes = changesBetween(
        { plan: before.plan, planEndsAt: isoOrNull(before.planEndsAt) },
        { plan, planEndsAt: isoOrNull(endsAt ?? undefined) },
      );
      return { action: 'account.plan', subject, reason: `${plan}: ${reason}`, changes, run };
    })
    .action(setMultiplier, async ({ param, json: { multiplier, reason } }) => {
      const { id: subject, multiplier: before = '1' } = await knownAccount(services, param.id);
      if (multiplier !== null) refuseLosses(services, multiplier);
      const run = () => need(services, accountAdmin).setMultiplier(subject, multiplier ?? undefined);
      const changes = changesBetween({ multiplier: before }, { multiplier: multiplier ?? '1' });
      return { action: 'account.multiplier', subject, reason: `${multiplier ?? 1}: ${reason}`, changes, run };
    })
    .action(disable, ({ param, json }) => setDisabled(services, param.id, json.reason, true))
    .action(enable, ({ param, json }) => setDisabled(services, param.id, json.reason, false))
    .action(setProject, async ({ param: { id, keyId: subject }, json: { project, reason } }) => {
      const before = (await need(services, accountAdmin).namesOf([subject])).get(subject)?.project ?? null;
      const run = async () => keyJson(await need(services, accountAdmin).setProject(id, subject, project ?? undefined));
      const changes = changesBetween({ project: before }, { project });
      return { action: 'account.key.project', subject, reason: `${project ?? 'none'}: ${reason}`, changes, run };
    })
    .action(rotate, ({ param: { id, keyId: subject }, json: { overlapHours, reason } }) => {
      const admin = need(services, accountAdmin);
      const run = async () => rotatedJson(await admin.rotateKey(id, subject, overlapHours * hourMs));
      return { action: 'account.key.rotate', subject, reason, changes: changesOf({ overlapHours }), run };
    })
    .action(revoke, ({ param: { id, keyId: subject }, json: { reason } }) => {
      const run = async () => keyJson(await need(services, accountAdmin).revokeKey(id, subject));
      return { action: 'account.key.revoke', subject, reason, run };
    });
}

interface MoneyChange {
  readonly action: string;
  readonly subject: string;
  readonly reason: string;
  readonly amount: Money;
  readonly run: () => Promise<unknown>;
}

/** A change that moves money: the audit log's reason names the amount, the answer the new balance. */
function moneyChange(services: ConsoleServices, accountId: string, { amount, reason, run, ...change }: MoneyChange) {
  const answer = async () => {
    await run();
    return { balance: await balanceOf(services, accountId) };
  };
  const changes = changesOf({ accountId, amount: usdText(amount) });
  return { ...change, accountId, reason: `${usdText(amount)} USD: ${reason}`, changes, run: answer };
}

async function setDisabled(services: ConsoleServices, named: string, reason: string, disabled: boolean) {
  const { id: subject, disabled: before } = await knownAccount(services, named);
  const run = () => need(services, accountAdmin).setDisabled(subject, disabled);
  const changes = changesBetween({ disabled: before }, { disabled });
  return { action: disabled ? 'account.disable' : 'account.enable', subject, reason, changes, run };
}

/** As the command does: a ratio below the own cost is not taken. */
function refuseLosses(services: ConsoleServices, multiplier: string): void {
  let ratio: ReturnType<typeof parseRatio>;
  try {
    ratio = parseRatio(multiplier);
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'multiplier' });
  }
  const losses = services.find(priceFloor)?.losses(ratio) ?? [];
  if (losses.length > 0)
    throw new GatewayError('invalid_request', `This ratio sells below the own cost: ${losses.join(' ')}`, {
      field: 'multiplier',
      code: 'below_cost',
    });
}

/** Without a price: the running plan ends now, and the rest of its grant keeps its own end. */
async function changePlan(
  services: ConsoleServices,
  accountId: string,
  terms: PlanTerms,
  endsAt: number | undefined,
): Promise<void> {
  await need(services, pool).transact(accountId, zero, async (posting) => {
    const term = await posting.term();
    if (term?.plan === terms.name) await posting.extendTerm(term, endsAt);
    else await posting.beginTerm(terms, endsAt);
    await need(services, accounts).setPlan(posting.orm, accountId, terms.name, endsAt);
  });
}
