/** An account's credit line: its own for clients, and any for operators, who decide on it. */
import { z } from '@hono/zod-openapi';
import { type Money, money, parseUsd } from '../../../common/domain/money.ts';
import type { CreditLineView, CreditMonth } from '../../../common/domain/organizations/credit-lines.ts';
import { creditLineAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { changesBetween } from '../routing/audit-changes.ts';
import { type ConsoleServices, need, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, id, instant, reasonInput, takes, usd, usdText, writerOf } from '../schemas.ts';

export const creditMonth = z.object({
  month: z.string().describe("2026-10, of the account's time zone."),
  until: instant,
  dueAt: instant.describe('Until then what was used is to be paid.'),
  used: usd,
  paid: usd.describe('What of that was paid, or given back with a refund.'),
  due: usd,
  state: z.enum(['running', 'due', 'overdue', 'paid']),
});
const line = z
  .object({
    amount: usd.describe('For each month; 0: no more.'),
    left: usd.describe('What of it can be spent now.'),
    isStopped: z.boolean().describe('It brings nothing because of a month that is overdue.'),
    stopsAt: instant.nullable().describe('When it stops because of what is not paid now; null: it does not.'),
    months: z.array(creditMonth).describe('Newest first: those that are not paid, and the last twelve.'),
  })
  .openapi('CreditLine');
const answer = answers(z.object({ line: line.nullable().describe('null: the account never had one.') }));
const amountInput = z
  .string()
  .regex(/^\d{1,12}(\.\d{1,9})?$/, 'must be USD as decimal text, such as 500')
  .transform((text): Money => money(parseUsd(text)))
  .openapi({ type: 'string', example: '500.00' });

const own = route('get', '/credit-line', 'Own credit line, with what is to be paid', answer);
const ofAccount = route('get', '/admin/accounts/{id}/credit-line', "An account's credit line", answer, {
  params: z.object({ id }),
});
const setForAccount = route(
  'post',
  '/admin/accounts/{id}/credit-line',
  'Let an account use so much each month before it pays; 0 stops that',
  answer,
  { params: z.object({ id }), body: takes(z.strictObject({ amount: amountInput, reason: reasonInput })) },
);

const lineJson = writerOf(line);

export function creditLineRoutes(services: ConsoleServices) {
  const find = async (accountId: string) => shown(await need(services, creditLineAdmin).find(accountId));
  return new Routes(services)
    .read(own, async ({ c }) => find(await ownAccount(services, c)))
    .read(ofAccount, async ({ param }) => find((await knownAccount(services, param.id)).id))
    .action(setForAccount, async ({ param, json: { amount, reason } }) => {
      const { id: subject } = await knownAccount(services, param.id);
      const before = await need(services, creditLineAdmin).find(subject);
      const run = async () => shown(await need(services, creditLineAdmin).set(subject, amount, reason));
      const changes = changesBetween({ amount: usdText(before?.amount ?? money(0n)) }, { amount: usdText(amount) });
      return { action: 'account.credit_line', subject, reason, changes, accountId: subject, run };
    });
}

function shown(view: CreditLineView | undefined) {
  if (view === undefined) return { line: null };
  return { line: lineJson({ ...view, months: view.months.map(withDue) }) };
}

export const withDue = (month: CreditMonth) => ({ ...month, due: money(month.used - month.paid) });
