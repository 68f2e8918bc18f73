/** The bill of a run: what each of its steps was charged, from the ledger. */
import type { Endpoint, Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { type ChargeView, ledgerQueries } from '../common/domain/admin/ledger.ts';
import { formatUsd, money, zero } from '../common/domain/money.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { firstCall, isRunId, stepId } from './ids.ts';

/** The most that the settings allow. */
const mostTurns = 256;
const mostCalls = 1_024;

export function billEndpoint(host: Host): Endpoint {
  return {
    method: 'GET',
    path: '/v1/usage/runs/:run',
    operation: 'usage',
    describes: [
      {
        path: '/v1/usage/runs/{run}',
        summary:
          'Returns what a run with tools of the gateway was charged, step by step; its id is the x-request-id of its answer.',
      },
    ],
    body: 'none',
    optional: [caller],
    handle: (exchange) => billOf(exchange, host),
    renderError: envelopeAnswer,
  };
}

async function billOf(exchange: Exchange, host: Host): Promise<Answer> {
  const { run = '' } = exchange.request.params;
  const ids = isRunId(run) ? stepIds(run) : [];
  const charges =
    ids.length === 0 ? [] : await host.find(ledgerQueries)?.chargesOf(ids, exchange.get(caller).accountId);
  if (charges === undefined || charges.length === 0)
    throw new GatewayError('not_found', 'No step of such a run was charged to this account.', {
      code: 'run_not_found',
    });
  const place = new Map(ids.map((id, index) => [id, index]));
  const steps = charges.toSorted((one, other) => place.get(one.requestId)! - place.get(other.requestId)!);
  const cost = steps.reduce((sum, charge) => money(sum + charge.cost), zero);
  const refunded = steps.reduce((sum, charge) => money(sum + charge.refunded), zero);
  const body = {
    ...{ object: 'run', id: run, currency: 'USD', cost: formatUsd(cost), refunded: formatUsd(refunded) },
    steps: steps.map((charge) => stepOf(charge, place.get(charge.requestId)! < mostTurns)),
  };
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return { status: 200, headers, body: JSON.stringify(body) };
}

function stepOf({ requestId, model, at, cost, usage, formula, estimated }: ChargeView, isTurn: boolean) {
  return {
    ...{ request_id: requestId, kind: isTurn ? 'turn' : 'tool', [isTurn ? 'model' : 'tool']: model },
    ...{ at: new Date(at).toISOString(), cost: formatUsd(cost), usage, why: formula, estimated },
  };
}

function stepIds(run: string): string[] {
  const turns = Array.from({ length: mostTurns }, (_, index) => stepId(run, 1 + index));
  return [...turns, ...Array.from({ length: mostCalls }, (_, index) => stepId(run, firstCall + index))];
}
