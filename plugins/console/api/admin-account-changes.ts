/** What operators change about accounts: money, plan, ratio, admission, keys. Each with a reason. */
import { createRoute, z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/errors.ts';
import { type Money, parseRatio, zero } from '../../../core/money.ts';
import { type PlanTerms, priceFloor } from '../../../core/vocabulary.ts';
import { accountDesk, accounts, ledger, moneyDesk, plans, pool } from '../desks.ts';
import { knownAccount } from './admin-accounts.ts';
import { keyRow, tellKey } from './keys.ts';
import { noRequest } from './request-rows.ts';
import { type Ask, actorOf, audited, type Console, need, router } from './router.ts';
import { idempotencyAsked } from './wallet.ts';
import { answers, done, id, instantAsked, reasonAsked, takes, usd, usdAsked, usdText } from './words.ts';

const one = z.object({ id });
const balance = answers(z.object({ balance: usd }));

const moneyAsked = {
  params: one,
  headers: idempotencyAsked,
  body: takes(z.strictObject({ amount: usdAsked, reason: reasonAsked })),
};

const credit = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/credit',
  summary: 'Add money to an account',
  request: {
    params: one,
    headers: idempotencyAsked,
    body: takes(
      z.strictObject({
        amount: usdAsked,
        reason: reasonAsked,
        kind: z.enum(['top-up', 'promotion']).default('top-up'),
        expiresAt: instantAsked.nullish().describe('When what is left of it lapses.'),
      }),
    ),
  },
  responses: balance,
});
const debit = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/debit',
  summary: 'Take money from an account',
  request: moneyAsked,
  responses: balance,
});
const refund = createRoute({
  method: 'post',
  path: '/admin/requests/{id}/refund',
  summary: 'Give back what a request has cost, or a part of it',
  request: moneyAsked,
  responses: balance,
});
const setPlan = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/plan',
  summary: 'Put an account on a plan',
  request: {
    params: one,
    body: takes(
      z.strictObject({
        plan: z.string().min(1).max(100),
        endsAt: instantAsked.nullish().describe('When the default plan takes its place.'),
        reason: reasonAsked,
      }),
    ),
  },
  responses: answers(done),
});
const setMultiplier = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/multiplier',
  summary: "Set an account's own price ratio",
  request: {
    params: one,
    body: takes(
      z.strictObject({
        multiplier: z
          .string()
          .regex(/^\d{1,4}(\.\d{1,6})?$/, 'must be a ratio such as 0.9')
          .nullable()
          .describe('null: 1.'),
        reason: reasonAsked,
      }),
    ),
  },
  responses: answers(done),
});
const withReason = takes(z.strictObject({ reason: reasonAsked }));
const disable = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/disable',
  summary: 'Refuse every call of an account',
  request: { params: one, body: withReason },
  responses: answers(done),
});
const enable = createRoute({
  method: 'post',
  path: '/admin/accounts/{id}/enable',
  summary: 'Admit the calls of an account again',
  request: { params: one, body: withReason },
  responses: answers(done),
});
const revoke = createRoute({
  method: 'delete',
  path: '/admin/accounts/{id}/keys/{keyId}',
  summary: "Revoke an account's key",
  request: { params: one.extend({ keyId: id }), body: withReason },
  responses: answers(keyRow),
});

export function accountChangeRoutes(hall: Console) {
  return router()
    .openapi(credit, async (ask) => {
      const { id: accountId } = await knownAccount(hall, ask.req.valid('param').id);
      const { amount, reason, kind, expiresAt } = ask.req.valid('json');
      const entry = { kind, reason, reference: referenceOf(ask), expiresAt: expiresAt ?? undefined };
      const after = await moved(hall, ask, { action: 'account.credit', subject: accountId, reason }, amount, () =>
        need(hall, ledger).credit(accountId, amount, entry),
      );
      return ask.json({ balance: after }, 200);
    })
    .openapi(debit, async (ask) => {
      const { id: accountId } = await knownAccount(hall, ask.req.valid('param').id);
      const { amount, reason } = ask.req.valid('json');
      const after = await moved(hall, ask, { action: 'account.debit', subject: accountId, reason }, amount, () =>
        need(hall, pool).debit(accountId, amount, { reason, reference: referenceOf(ask) }),
      );
      return ask.json({ balance: after }, 200);
    })
    .openapi(refund, async (ask) => {
      const requestId = ask.req.valid('param').id;
      const { amount, reason } = ask.req.valid('json');
      const charge = await need(hall, moneyDesk).charge(requestId, undefined);
      if (charge === undefined) throw noRequest();
      const entry = { reason, reference: referenceOf(ask) };
      const after = await moved(hall, ask, { action: 'request.refund', subject: requestId, reason }, amount, () =>
        need(hall, pool).refundRequest(charge.accountId, requestId, amount, entry),
      );
      return ask.json({ balance: after }, 200);
    })
    .openapi(setPlan, async (ask) => {
      const { id: accountId } = await knownAccount(hall, ask.req.valid('param').id);
      const { plan, endsAt, reason } = ask.req.valid('json');
      if (!need(hall, plans).has(plan))
        throw new GatewayError('invalid_request', `There is no plan "${plan}".`, { field: 'plan' });
      if (endsAt != null && endsAt <= hall.clock.now())
        throw new GatewayError('invalid_request', 'A plan ends at a time to come.', { field: 'endsAt' });
      await audited(hall, ask, { action: 'account.plan', subject: accountId, reason: `${plan}: ${reason}` }, () =>
        changePlan(hall, accountId, need(hall, plans).terms(plan), endsAt ?? undefined),
      );
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(setMultiplier, async (ask) => {
      const { id: accountId } = await knownAccount(hall, ask.req.valid('param').id);
      const { multiplier, reason } = ask.req.valid('json');
      if (multiplier !== null) refuseLosses(hall, multiplier);
      const change = { action: 'account.multiplier', subject: accountId, reason: `${multiplier ?? 1}: ${reason}` };
      await audited(hall, ask, change, () => need(hall, accountDesk).setMultiplier(accountId, multiplier ?? undefined));
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(disable, async (ask) => {
      await setDisabled(hall, ask, ask.req.valid('param').id, ask.req.valid('json').reason, true);
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(enable, async (ask) => {
      await setDisabled(hall, ask, ask.req.valid('param').id, ask.req.valid('json').reason, false);
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(revoke, async (ask) => {
      const { id: accountId, keyId } = ask.req.valid('param');
      const { reason } = ask.req.valid('json');
      const view = await audited(hall, ask, { action: 'account.key.revoke', subject: keyId, reason }, () =>
        need(hall, accountDesk).revokeKey(accountId, keyId),
      );
      return ask.json(tellKey(view), 200);
    });
}

/** One event of one person: the same key of another operator is another event. */
function referenceOf(ask: Ask): string {
  return `console:${actorOf(ask).id}:${ask.req.header('idempotency-key')}`;
}

async function moved(
  hall: Console,
  ask: Ask,
  change: { action: string; subject: string; reason: string },
  amount: Money,
  work: () => Promise<Money>,
): Promise<string> {
  const reason = `${usdText(amount)} USD: ${change.reason}`;
  return usdText(await audited(hall, ask, { ...change, reason }, work));
}

async function setDisabled(hall: Console, ask: Ask, named: string, reason: string, disabled: boolean): Promise<void> {
  const { id: subject } = await knownAccount(hall, named);
  const action = disabled ? 'account.disable' : 'account.enable';
  await audited(hall, ask, { action, subject, reason }, () => need(hall, accountDesk).setDisabled(subject, disabled));
}

/** As the command does: a ratio below the own cost is not taken. */
function refuseLosses(hall: Console, multiplier: string): void {
  let ratio: ReturnType<typeof parseRatio>;
  try {
    ratio = parseRatio(multiplier);
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'multiplier' });
  }
  const losses = hall.find(priceFloor)?.losses(ratio) ?? [];
  if (losses.length > 0)
    throw new GatewayError('invalid_request', `This ratio sells below the own cost: ${losses.join(' ')}`, {
      field: 'multiplier',
      code: 'below_cost',
    });
}

/** Without a price: what ran before ends now, what is left of its grant keeps its own end. */
async function changePlan(
  hall: Console,
  accountId: string,
  terms: PlanTerms,
  endsAt: number | undefined,
): Promise<void> {
  await need(hall, pool).transact(accountId, zero, async (posting) => {
    const term = await posting.term();
    if (term?.plan === terms.name) await posting.extendTerm(term, endsAt);
    else await posting.beginTerm(terms, endsAt);
    await need(hall, accounts).setPlan(posting.orm, accountId, terms.name, endsAt);
  });
}
