/** A client's money: the pool, the ledger, codes, plans for sale, payments from outside. */
import { createRoute, z } from '@hono/zod-openapi';
import { payments } from '../../../core/desk-money.ts';
import { moneyDesk, pool, shop, shopDesk } from '../desks.ts';
import { csvAnswer } from './csv.ts';
import { poolAnswer, tellPool } from './home.ts';
import { ledgerAsked, ledgerColumns, ledgerRow, pageOfLedger } from './ledger-rows.ts';
import { planCard, tellPlan } from './plan-cards.ts';
import { actorOf, audited, type Console, need, ownAccount, router } from './router.ts';
import {
  answers,
  answersCsv,
  asked,
  instant,
  iso,
  isoOrNull,
  pageAsked,
  pageOf,
  takes,
  usd,
  usdAsked,
  usdOrNull,
  usdText,
} from './words.ts';

/** Names the event, so that a repetition changes nothing. */
export const idempotencyAsked = z.object({
  'idempotency-key': z.string().regex(/^[\x21-\x7e]{8,200}$/, 'must be 8 to 200 printable characters'),
});

const wallet = createRoute({ method: 'get', path: '/wallet', summary: 'Own money', responses: answers(poolAnswer) });
const ledger = createRoute({
  method: 'get',
  path: '/wallet/ledger',
  summary: 'Own ledger',
  request: { query: ledgerAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(ledgerRow)),
});
const ledgerCsv = createRoute({
  method: 'get',
  path: '/wallet/ledger.csv',
  summary: 'Own ledger as CSV',
  request: { query: ledgerAsked },
  responses: answersCsv,
});
const redeem = createRoute({
  method: 'post',
  path: '/wallet/redeem',
  summary: 'Redeem a code',
  request: { body: takes(z.strictObject({ code: z.string().trim().min(1).max(100) })) },
  responses: answers(
    z.object({ amount: usd.nullable(), plan: z.string().nullable(), endsAt: instant.nullable(), balance: usd }),
  ),
});
const offers = createRoute({
  method: 'get',
  path: '/wallet/plans',
  summary: 'Plans that can be bought',
  responses: answers(z.object({ rows: z.array(planCard) })),
});
const buy = createRoute({
  method: 'post',
  path: '/wallet/plans/{name}',
  summary: 'Buy a plan from the balance',
  request: { params: z.object({ name: z.string().min(1).max(100) }), headers: idempotencyAsked },
  responses: answers(z.object({ plan: z.string(), price: usd, endsAt: instant.nullable(), balance: usd })),
});
const payment = z.object({
  id: z.string(),
  amount: usd,
  state: z.enum(['open', 'paid', 'refunded', 'expired']),
  createdAt: instant,
  paidAt: instant.nullable(),
  refunded: usd.nullable(),
});
const paid = createRoute({
  method: 'get',
  path: '/payments',
  summary: 'Own payments, and the least and most that can be paid in at once',
  request: { query: pageAsked },
  responses: answers(
    pageOf(payment).extend({
      least: usd,
      most: usd,
      amounts: z.array(usd).describe('To choose from; others between the bounds can be paid too.'),
    }),
  ),
});
const checkout = createRoute({
  method: 'post',
  path: '/payments/checkout',
  summary: 'Begin to pay money in; the answer tells where to go',
  request: { body: takes(z.strictObject({ amount: usdAsked })), headers: idempotencyAsked },
  responses: answers(z.object({ url: z.string() })),
});

export function walletRoutes(hall: Console) {
  return router()
    .openapi(wallet, async (ask) => {
      return ask.json(tellPool(await need(hall, pool).view(await ownAccount(hall, ask))), 200);
    })
    .openapi(ledger, async (ask) => {
      const query = ask.req.valid('query');
      return ask.json(await pageOfLedger(hall, await ownAccount(hall, ask), query, asked(query)), 200);
    })
    .openapi(ledgerCsv, async (ask) => {
      const query = ask.req.valid('query');
      const accountId = await ownAccount(hall, ask);
      need(hall, moneyDesk);
      return csvAnswer('ledger', ledgerColumns, (page) => pageOfLedger(hall, accountId, query, page));
    })
    .openapi(redeem, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const { code } = ask.req.valid('json');
      // A code is money: its first characters are enough to know it by.
      const subject = `${code.slice(0, 8)}…`;
      const gift = await audited(hall, ask, { action: 'code.redeem', subject }, () =>
        need(hall, shop).redeem(accountId, code),
      );
      return ask.json(
        {
          amount: usdOrNull(gift.amount),
          plan: gift.plan ?? null,
          endsAt: isoOrNull(gift.endsAt),
          balance: usdText(gift.balance),
        },
        200,
      );
    })
    .openapi(offers, (ask) => ask.json({ rows: need(hall, shopDesk).offers().map(tellPlan) }, 200))
    .openapi(buy, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const { name } = ask.req.valid('param');
      const reference = `console:${actorOf(ask).id}:${ask.req.valid('header')['idempotency-key']}`;
      const bought = await audited(hall, ask, { action: 'plan.buy', subject: name }, () =>
        need(hall, shop).buy(accountId, name, reference),
      );
      const { plan, price, endsAt, balance } = bought;
      return ask.json({ plan, price: usdText(price), endsAt: isoOrNull(endsAt), balance: usdText(balance) }, 200);
    });
}

export function paymentRoutes(hall: Console) {
  return router()
    .openapi(paid, async (ask) => {
      const desk = need(hall, payments);
      const { rows, next } = await desk.list(await ownAccount(hall, ask), asked(ask.req.valid('query')));
      const told = rows.map(({ id, amount, state, createdAt, paidAt, refunded }) => ({
        id,
        amount: usdText(amount),
        state,
        createdAt: iso(createdAt),
        paidAt: isoOrNull(paidAt),
        refunded: usdOrNull(refunded),
      }));
      const bounds = {
        least: usdText(desk.least),
        most: usdText(desk.most),
        amounts: (desk.amounts ?? []).map(usdText),
      };
      return ask.json({ rows: told, next: next ?? null, ...bounds }, 200);
    })
    .openapi(checkout, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const { amount } = ask.req.valid('json');
      const reference = `console:${actorOf(ask).id}:${ask.req.valid('header')['idempotency-key']}`;
      const page = `${ask.env.origin}/console/wallet`;
      const options = { reference, paidUrl: `${page}?payment=paid`, leftUrl: `${page}?payment=left` };
      const { url } = await audited(hall, ask, { action: 'payment.begin', subject: usdText(amount) }, () =>
        need(hall, payments).checkout(accountId, amount, options),
      );
      return ask.json({ url }, 200);
    });
}
