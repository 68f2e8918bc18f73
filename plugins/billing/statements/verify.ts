/** Checks a statement's file by itself: that no byte was changed, and that each charge, each sum and the balances follow from its rows. */
import { isObject, objectOf, tryParse } from '../../../core/json/json.ts';
import { zoneOf } from '../../../core/tools/time-zone.ts';
import { cost } from '../../common/domain/money.ts';
import { monthAt, monthOf } from '../grants/months.ts';
import { decodePrice, decodeRatio } from '../model/records.ts';
import { type DueMonth, type Head, type Row, StatementLines } from './format.ts';

export interface Verdict {
  readonly ok: boolean;
  readonly text: string;
  /** The first line that differs, from 1. */
  readonly line?: number;
  readonly digest?: string;
}

class Difference extends Error {}

/** `lines`: those of the file, each without its line end. */
export async function verifyStatement(lines: AsyncIterable<string>): Promise<Verdict> {
  const reader = new Reader();
  let number = 0;
  try {
    for await (const line of lines) {
      number += 1;
      reader.read(line);
    }
    number += 1;
    return { ok: true, ...reader.end() };
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    return { ok: false, line: number, text: `Line ${number} ${error.message}.` };
  }
}

class Reader {
  #head: Head | undefined;
  #lines: StatementLines | undefined;
  #lastSeq = 0n;
  #isOver = false;

  read(text: string): void {
    const { digest, ...value } = objectOf(tryParse(text)) ?? differs('is no JSON object');
    if (this.#isOver) differs('stands behind the sums, which end a statement');
    if (this.#lines === undefined) this.#begin(value as unknown as Head);
    else if ('lines' in value) this.#close(value);
    else this.#row(value as unknown as Row);
    if (JSON.stringify({ ...value, digest }) !== text) differs('is not as it was written');
    if (digest !== this.#lines!.digest) differs('was changed: its digest does not follow from it and the line before');
  }

  end(): { text: string; digest: string } {
    if (!this.#isOver) differs('is missing: the sums end a statement');
    const { account, number, month } = this.#head!;
    const { rows, digest } = this.#lines!;
    const text = `Statement ${number} of ${account} for ${month} is as it was sealed: ${rows} rows, digest ${digest}.`;
    return { text, digest };
  }

  #begin(head: Head): void {
    if (head.format !== 'model-gateway statement 1') differs('is no head of a statement');
    if (!isWhole(head.opening) || zoneOf(head.zone) === undefined || !/^\d{4}-\d\d$/.test(head.month))
      differs('has no opening balance, zone and month');
    const { from, until } = monthOf(head.month, head.zone);
    if (head.from !== new Date(from).toISOString() || head.until !== new Date(until).toISOString())
      differs(`does not reach from the begin to the end of ${head.month} in ${head.zone}`);
    this.#head = head;
    this.#lines = new StatementLines(head);
  }

  #row(row: Row): void {
    const { zone, month, until } = this.#head!;
    if (!isWhole(row.amount) || !/^\d{1,19}$/.test(String(row.seq))) differs('has no amount and number');
    if (BigInt(row.seq) <= this.#lastSeq) differs('is out of order');
    this.#lastSeq = BigInt(row.seq);
    const at = Date.parse(row.at);
    if (!(at < Date.parse(until))) differs(`is not of ${month} or an earlier month`);
    const own = monthAt(at, zone);
    if (own !== (row.corrects ?? month)) differs(`is of ${own}, which it does not say`);
    if (row.kind === 'CHARGE') checkCharge(row);
    this.#lines!.row(row);
  }

  #close(given: object): void {
    const { lines, credit } = given as { lines: unknown; credit?: unknown };
    const expected = this.#lines!.summary(credit === undefined ? [] : dueIn(credit, this.#head!));
    for (const [index, sum] of expected.lines.entries()) {
      const found = JSON.stringify(Array.isArray(lines) ? lines[index] : undefined);
      if (found !== JSON.stringify(sum)) differs(`says ${found}, and the rows come to ${JSON.stringify(sum)}`);
    }
    if (JSON.stringify(credit) !== JSON.stringify(expected.credit))
      differs('says of a credit line what does not follow from what was used and paid of it');
    if (JSON.stringify(given) !== JSON.stringify(expected)) differs('has other sums than its rows come to');
    this.#lines!.line(expected);
    this.#isOver = true;
  }
}

/** Months that have ended, in their order, of each of which less was paid than used. */
function dueIn(credit: unknown, { until: end }: Head): DueMonth[] {
  let before = '';
  for (const each of Array.isArray(credit) ? credit : []) {
    const { month, until, due_at: dueAt, used, paid } = objectOf(each) ?? {};
    const isMonth = /^\d{4}-\d\d$/.test(String(month)) && String(month) > before;
    if (!isMonth || !(Date.parse(String(until)) <= Date.parse(end)) || Number.isNaN(Date.parse(String(dueAt))))
      differs('has a credit line with a month that has not ended, or with months in no order');
    if (!isWhole(used) || !isWhole(paid) || BigInt(String(paid)) < 0n || BigInt(String(used)) <= BigInt(String(paid)))
      differs(`says that something is to be paid for ${month}, and not more was used than paid`);
    before = String(month);
  }
  return Array.isArray(credit) ? credit : [];
}

/** A charge that was limited to its hold follows no formula. */
function checkCharge({ amount, usage, price, ratio, reason }: Row): void {
  if (reason === 'absurd') return;
  let charged: bigint | undefined;
  try {
    if (isObject(usage) && isObject(price)) charged = cost(usage, decodePrice(price), decodeRatio(ratio ?? ''));
  } catch {
    // An unreadable count, price or ratio.
  }
  if (charged === undefined) differs('has no usage, price and ratio that a charge can be made of');
  if (-charged! !== BigInt(amount))
    differs(`charges ${-BigInt(amount)} nano-USD, and usage × price × ratio is ${charged}`);
}

const isWhole = (value: unknown): boolean => typeof value === 'string' && /^-?\d{1,19}$/.test(value);

function differs(message: string): never {
  throw new Difference(message);
}
