/** From a hold's entries to the rows of the database. Amounts become text, for JSON has no whole numbers of this size. Pure. */
import { type Price, usageClasses } from '../../core/usage.ts';
import type { Entry, Hold } from './hold.ts';
import { type AttemptNote, encodeRatio } from './records.ts';

export interface Rows {
  readonly ledger: object[];
  readonly usage: object[];
  readonly attempts: object[];
}

/** The rows of a batch; `position` keeps the entries' order inside one statement. */
export function rowsOfEntries(entries: readonly Entry[]): Rows {
  const rows: Rows = { ledger: [], usage: [], attempts: [] };
  entries.forEach((entry, position) => {
    rows.ledger.push(ledgerRow(entry, position));
    if (entry.end?.kind === 'SETTLE') rows.usage.push(usageRow(entry));
    for (const attempt of entry.end?.attempts ?? []) rows.attempts.push(attemptRow(entry.hold, attempt));
  });
  return rows;
}

function ledgerRow(entry: Entry, position: number): object {
  return {
    position,
    account_id: entry.hold.terms.accountId,
    kind: entry.kind,
    request_id: entry.hold.terms.id,
    part: entry.part,
    amount: entry.amount.toString(),
    held: entry.held.toString(),
    revenue: (-entry.amount - entry.held).toString(),
    detail: detailOf(entry),
    created_at: timeOf(entry.at),
  };
}

/** What a reader needs to do the sum again: counts, prices, ratio. */
function detailOf(entry: Entry): object {
  const { terms } = entry.hold;
  const { end } = entry;
  if (end?.kind === 'SETTLE') {
    const { usage, estimated, reason } = end;
    const { model, ratio, price, priceVersion } = terms;
    const formula = { price: priceTexts(price), ratio: encodeRatio(ratio), price_version: priceVersion };
    return { model, usage, estimated, reason, ...formula };
  }
  if (end !== undefined) return { model: terms.model, reason: end.reason };
  if (entry.kind === 'EXTEND') return { output_tokens: entry.output };
  return { model: terms.model, input_tokens: terms.inputTokens, output_tokens: terms.outputTokens };
}

function usageRow(entry: Entry): object {
  const { end, hold } = entry;
  if (end?.kind !== 'SETTLE') throw new Error(`${entry.kind} has no usage`);
  const { terms } = hold;
  const served = end.attempts.at(-1);
  return {
    request_id: terms.id,
    account_id: terms.accountId,
    key_id: terms.keyId,
    model: terms.model,
    provider: served?.provider,
    target_model: served?.model,
    classes: end.usage,
    estimated_input: terms.inputTokens,
    held: (-entry.held).toString(),
    cost: end.cost,
    estimated: end.estimated,
    terminal: end.terminal,
    finish: end.finish,
    upstream_id: end.upstreamId,
    price_version: terms.priceVersion,
    ratio: encodeRatio(terms.ratio),
    created_at: timeOf(end.at),
  };
}

function attemptRow(hold: Hold, attempt: AttemptNote): object {
  return {
    request_id: hold.terms.id,
    number: attempt.number,
    account_id: hold.terms.accountId,
    provider: attempt.provider,
    model: attempt.model,
    credential: attempt.credential,
    protocol: attempt.protocol,
    result: attempt.result,
    status: attempt.status,
    duration_ms: attempt.durationMs === undefined ? undefined : Math.round(attempt.durationMs),
    error: attempt.error,
    started_at: timeOf(attempt.startedAt),
  };
}

const knownPrices = new WeakMap<Price, object>();

function priceTexts(price: Price): object {
  const known = knownPrices.get(price);
  if (known !== undefined) return known;
  const named = usageClasses.filter((name) => price[name] !== undefined);
  const texts = Object.fromEntries(named.map((name) => [name, price[name]?.toString()]));
  knownPrices.set(price, texts);
  return texts;
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
