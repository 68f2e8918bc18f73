/** Requires the money of a batch's first lines when it is ordered, by what each of them would hold. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { caller } from '../common/domain/accounts.ts';
import { batchLine, unrecorded, vendorBatch } from '../common/domain/calls.ts';
import { funds, heldEstimate } from '../common/domain/ledger.ts';
import { formatUsd, money } from '../common/domain/money.ts';
import type { UploadedFiles } from '../common/domain/stored-files.ts';
import type { Batch } from './batch.ts';
import { type InputLimits, linesOf, requestIn } from './input.ts';
import { headersOf, lineAnswer, requestOf } from './perform.ts';

export interface EstimateTools {
  readonly host: Host;
  readonly files: () => UploadedFiles;
  readonly limits: InputLimits;
  /** Lines that the balance must cover. */
  readonly covered: number;
}

type Ordered = Pick<Batch, 'accountId' | 'inputFile' | 'endpoint' | 'headers' | 'remoteAddress' | 'dialect'>;

/** Lines that are looked at, as those that will be refused need no money. */
const mostLines = 100;
const longestAnswer = 4_096;

/** 402 where the balance or a budget does not cover them. Lines with mistakes are not among them. */
export async function requireFirstLines(tools: EstimateTools, exchange: Exchange, batch: Ordered): Promise<void> {
  const { host, covered } = tools;
  const spendable = host.find(funds);
  if (spendable === undefined) return;
  const calls: Exchange[] = [];
  for await (const made of estimates(tools, exchange, batch)) if (calls.push(made) === covered) break;
  const lines = calls.length;
  const needed = money(calls.reduce((sum, made) => sum + made.get(heldEstimate), 0n));
  if (needed === 0n) return;
  try {
    await spendable.require(exchange, needed);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'insufficient_balance') throw error;
    const what =
      lines === 1 ? 'The first request of this batch needs' : `The first ${lines} requests of this batch need`;
    const message = `${what} ${formatUsd(needed)} USD at most, which the balance of this account does not cover.`;
    const { code, shouldRetry } = error;
    throw new GatewayError('insufficient_balance', message, {
      ...(code === undefined ? {} : { code }),
      ...(shouldRetry === undefined ? {} : { shouldRetry }),
      cause: error,
    });
  }
  await spendable.fits(calls);
}

/** Exchanges of lines that would be made, as far as to what they would hold. */
async function* estimates(
  { host, files, limits }: EstimateTools,
  exchange: Exchange,
  batch: Ordered,
): AsyncGenerator<Exchange> {
  const opened = await files().open(batch.accountId, batch.inputFile);
  if (opened === undefined) return;
  let seen = 0;
  try {
    for await (const { bytes } of linesOf(opened.body, limits.lineBytes)) {
      seen += 1;
      const made = bytes === 'too long' ? undefined : await estimate(host, exchange, batch, bytes.toString('utf8'));
      if (made !== undefined) yield made;
      if (seen === mostLines) return;
    }
  } finally {
    opened.close();
  }
}

/** undefined: it will be refused. */
async function estimate(host: Host, order: Exchange, batch: Ordered, text: string): Promise<Exchange | undefined> {
  const request = requestIn(text, batch.endpoint);
  if ('code' in request) return undefined;
  let made: Exchange | undefined;
  const answer = await host.perform({
    ...requestOf(batch, request),
    headers: headersOf(batch),
    prepare(exchange) {
      made = exchange;
      exchange.set(caller, order.get(caller));
      exchange.set(batchLine, true);
      exchange.set(vendorBatch, 'estimate');
      exchange.set(unrecorded, true);
    },
  });
  await lineAnswer(batch, answer, longestAnswer);
  return made?.find(heldEstimate) === undefined ? undefined : made;
}
