/** The refusal of what an account cannot pay for. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { formatUsd } from '../../common/domain/money.ts';
import type { WindowAt } from './balances.ts';

const windowText = { '5h': '5-hour', day: 'daily', week: 'weekly', month: 'monthly' } as const;

/** The refusal names the window that locks the money and the time it ends. Retrying earlier is useless. */
export function notCovered(window: WindowAt | undefined): GatewayError {
  if (window === undefined) {
    return new GatewayError('insufficient_balance', 'The balance of this account does not cover this call.', {
      code: 'insufficient_balance',
      shouldRetry: false,
    });
  }
  const { name, limit, end } = window;
  const message =
    `The ${windowText[name]} window of the plan is used up: ${formatUsd(limit)} USD of its grant may be spent within it, ` +
    `and the rest of the balance does not cover this call. It frees at ${new Date(end).toISOString()}.`;
  return new GatewayError('insufficient_balance', message, { code: 'plan_window_used_up', shouldRetry: false });
}
