/** The records of calls as texts, as the journal takes them: no object is made for each. Pure. */
import type { RequestRow } from '../../common/domain/call-facts.ts';
import type { Ratio } from '../../common/domain/money.ts';
import type { Price } from '../../common/domain/usage.ts';
import { cleaned, encodePrice, encodeRatio, encodeRecords, type JournalRecord } from './records.ts';

/**
 * A record as text without its closing brace, as the journal takes it. Calls have no object for each of their records: `holdText`,
 * `settleText` and `factsText` write what this would.
 */
export function recordText(record: JournalRecord): string {
  return encodeRecords([record]).slice(1, -2);
}

/** The record of such a text. */
export function recordOf<T extends JournalRecord>(text: string): T {
  return JSON.parse(`${text}}`) as T;
}

/** Characters that JSON escapes or a database text cannot hold, and surrogates, which may be unpaired. */
const special = /["\\\u0000-\u001f\ud800-\udfff]/;

/** A member with a text: `begin` is its name with the quotation mark of the text, `,"finish":"`. Nothing where there is no text. */
export function textMember(begin: string, text: string | undefined): string {
  if (text === undefined) return '';
  return special.test(text) ? begin.slice(0, -1) + JSON.stringify(cleaned(text)) : `${begin}${text}"`;
}

export function numberMember(begin: string, number: number | undefined): string {
  return number === undefined ? '' : begin + (Number.isFinite(number) ? number : null);
}

/** The request log's part of a call's row. */
export function factsText(row: RequestRow, story: string | undefined): string {
  const { dropped } = row;
  return (
    textMember('{"kind":"FACTS","id":"', row.request_id) +
    textMember(',"operation":"', row.operation) +
    textMember(',"protocol":"', row.protocol) +
    textMember(',"asked":"', row.model) +
    textMember(',"provider":"', row.provider) +
    textMember(',"target":"', row.upstream_model) +
    (row.streamed ? ',"streamed":true' : ',"streamed":false') +
    numberMember(',"status":', row.status) +
    textMember(',"outcome":"', row.outcome) +
    textMember(',"errorKind":"', row.error_kind) +
    textMember(',"errorCode":"', row.error_code) +
    numberMember(',"tries":', row.attempts) +
    numberMember(',"firstByteMs":', row.first_byte_ms) +
    numberMember(',"totalMs":', row.total_ms) +
    numberMember(',"bytesIn":', row.bytes_in) +
    numberMember(',"bytesOut":', row.bytes_out) +
    (dropped === undefined ? '' : `,"dropped":${JSON.stringify(dropped.map(cleaned))}`) +
    // A text in a column of JSON, so it is quoted twice. A timeline has no characters to be escaped.
    (story === undefined
      ? ''
      : `,"story":${special.test(story) ? JSON.stringify(JSON.stringify(cleaned(story))) : `"\\"${story}\\""`}`)
  );
}

/** How a call is priced: the members `price`, `ratio`, `version` and `tier`. */
interface Priced {
  readonly price: Price;
  readonly version: string;
  readonly tier: string;
}

interface PricedText extends Omit<Priced, 'price'> {
  readonly ratio: Ratio;
  readonly text: string;
}

const knownPrices = new WeakMap<Price, PricedText>();

/** Cached per price object, since calls share them. */
export function pricedMembers({ price, version, tier }: Priced, ratio: Ratio): string {
  const known = knownPrices.get(price);
  if (known !== undefined && known.ratio === ratio && known.version === version && known.tier === tier)
    return known.text;
  const names = { price: encodePrice(price), ratio: encodeRatio(ratio), version: cleaned(version) };
  const named = tier === '' ? names : { ...names, tier: cleaned(tier) };
  const text = `,${JSON.stringify(named).slice(1, -1)}`;
  knownPrices.set(price, { ratio, version, tier, text });
  return text;
}
