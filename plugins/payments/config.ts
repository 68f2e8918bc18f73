/** The settings of `payments`. */

import { secretText, z } from '../../core/contract/schema.ts';
import { usd } from '../common/domain/money-schema.ts';

/** Nano-USD of the smallest unit that can be paid. */
export const centNano = 10_000_000n;

const sum = () => usd().refine((amount) => amount > 0n && amount % centNano === 0n, 'must be whole cents above zero');

export const configSchema = z
  .strictObject({
    secret_key: secretText()
      .default('')
      .describe('Secret key of the Stripe account, best a restricted one; empty: no payments. Set it to take cards.'),
    webhook_secret: secretText()
      .default('')
      .describe(
        'Signing secret of the webhook endpoint /payments/webhook; empty: no payments. Copy it from the payment service.',
      ),
    currency: z
      .literal('usd')
      .default('usd')
      .describe('Currency that is paid in; balances are USD. Leave it as it is: there is no other one.'),
    amounts: z
      .array(sum())
      .max(20)
      .prefault([5, 10, 25, 50, 100])
      .describe('Sums that payers can choose from. Change it to what your clients usually spend.'),
    min: sum()
      .prefault(5)
      .describe('The least that can be paid at once. Raise it when fees take too much of small payments.'),
    max: sum().prefault(500).describe('The most that can be paid at once. Lower it when stolen cards are tried.'),
    api_base: z
      .url({ protocol: /^https?$/ })
      .default('https://api.stripe.com')
      .describe('Where the payment service answers. Change it for tests alone.'),
  })
  .superRefine(({ amounts, min, max }, context) => {
    if (min > max) context.addIssue({ code: 'custom', path: ['min'], message: 'must not be above max' });
    amounts.forEach((amount, at) => {
      if (amount >= min && amount <= max) return;
      context.addIssue({ code: 'custom', path: ['amounts', at], message: 'must be from min to max' });
    });
  });

export type PaymentsConfig = z.output<typeof configSchema>;
