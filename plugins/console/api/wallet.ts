/** A client's money: the pool, the ledger, codes, plans for sale, payments from outside. */

import { z } from '@hono/zod-openapi';
import { payments } from '../../common/domain/admin/ledger.ts';
import { pool, shop, shopAdmin } from '../services.ts';
import { balanceOf, poolAnswer, poolJson } from './home.ts';
import { csvOfLedger, ledgerPage, ledgerQuery, ledgerRow, ledgerRowJson } from './ledger-rows.ts';
import { planCard, planJson } from './plan-cards.ts';
import { type ConsoleServices, need, ownAccount, referenceOf } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import {
  answers,
  answersCsv,
  instant,
  isoOrNull,
  listed,
  pageOf,
  pageQuery,
  pageRequest,
  takes,
  usd,
  usdInput,
  usdOrNull,
  usdText,
  writerOf,
} from './schemas.ts';

/** Names the event, so that a repetition changes nothing. */
export const idempotencyHeader = z.object({
  'idempotency-key': z.string().regex(/^[\x21-\x7e]{8,200}$/, 'must be 8 to 200 printable characters'),
});

const wallet = route('get', '/wallet', 'Own money', answers(poolAnswer));
const ledger = route('get', '/wallet/ledger', 'Own ledger', answers(pageOf(ledgerRow)), {
  query: ledgerQuery.extend(pageQuery.shape),
});
const ledgerCsv = route('get', '/wallet/ledger.csv', 'Own ledger as CSV', answersCsv, { query: ledgerQuery });
const redeem = route(
  'post',
  '/wallet/redeem',
  'Redeem a code',
  answers(z.object({ amount: usd.nullable(), plan: z.string().nullable(), endsAt: instant.nullable(), balance: usd })),
  { body: takes(z.strictObject({ code: z.string().trim().min(1).max(100) })) },
);
const offers = route(
  'get',
  '/wallet/plans',
  'Plans that can be bought',
  answers(z.object({ rows: z.array(planCard) })),
);
const buy = route(
  'post',
  '/wallet/plans/{name}',
  'Buy a plan from the balance',
  answers(z.object({ plan: z.string(), price: usd, endsAt: instant.nullable(), balance: usd })),
  { params: z.object({ name: z.string().min(1).max(100) }), headers: idempotencyHeader },
);
const payment = z.object({
  id: z.string(),
  amount: usd,
  state: z.enum(['open', 'paid', 'refunded', 'expired']),
  createdAt: instant,
  paidAt: instant.nullable(),
  refunded: usd.nullable(),
});
const paid = route(
  'get',
  '/payments',
  'Own payments, and the least and most that can be paid in at once',
  answers(
    pageOf(payment).extend({
      least: usd,
      most: usd,
      amounts: z.array(usd).describe('To choose from; others between the bounds can be paid too.'),
    }),
  ),
  { query: pageQuery },
);
const checkout = route(
  'post',
  '/payments/checkout',
  'Begin a top-up; the answer has the address of the payment page',
  answers(z.object({ url: z.string() })),
  { body: takes(z.strictObject({ amount: usdInput })), headers: idempotencyHeader },
);

export function walletRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(wallet, async ({ c }) => poolJson(await need(services, pool).view(await ownAccount(services, c))))
    .list(ledger, ledgerRowJson, async ({ query, c }, page) => {
      const accountId = await ownAccount(services, c);
      // The page shows these rows beside the balance, which includes what is due.
      if (page.after === undefined) await services.find(pool)?.applyDue(accountId);
      return ledgerPage(services, accountId, query, page);
    })
    .file(ledgerCsv, async ({ query, c }) => csvOfLedger(services, await ownAccount(services, c), query))
    .action(redeem, async ({ json: { code }, c }) => {
      const accountId = await ownAccount(services, c);
      return {
        action: 'code.redeem',
        // A code is money: its first characters are enough to identify it.
        subject: `${code.slice(0, 8)}…`,
        run: async () => {
          const { amount, plan = null, endsAt } = await need(services, shop).redeem(accountId, code);
          return {
            amount: usdOrNull(amount),
            plan,
            endsAt: isoOrNull(endsAt),
            balance: await balanceOf(services, accountId),
          };
        },
      };
    })
    .read(offers, () => ({ rows: need(services, shopAdmin).offers().map(planJson) }))
    .action(buy, async ({ param: { name }, c }) => {
      const accountId = await ownAccount(services, c);
      return {
        action: 'plan.buy',
        subject: name,
        run: async () => {
          const { plan, price, endsAt } = await need(services, shop).buy(accountId, name, referenceOf(c));
          return {
            plan,
            price: usdText(price),
            endsAt: isoOrNull(endsAt),
            balance: await balanceOf(services, accountId),
          };
        },
      };
    });
}

export function paymentRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(paid, async ({ query, c }) => {
      const provider = need(services, payments);
      const page = await provider.list(await ownAccount(services, c), pageRequest(query));
      const { least, most, amounts = [] } = provider;
      const bounds = { least: usdText(least), most: usdText(most), amounts: amounts.map(usdText) };
      return { ...listed(page, paymentJson), ...bounds };
    })
    .action(checkout, async ({ json: { amount }, c }) => {
      const accountId = await ownAccount(services, c);
      const page = `${c.env.origin}/console/wallet`;
      const options = {
        reference: referenceOf(c),
        paidUrl: `${page}?payment=paid`,
        leftUrl: `${page}?payment=left`,
      };
      return {
        action: 'payment.begin',
        subject: usdText(amount),
        run: async () => ({ url: (await need(services, payments).checkout(accountId, amount, options)).url }),
      };
    });
}

const paymentJson = writerOf(payment);
