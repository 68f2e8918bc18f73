/** A statement as lines of JSON: its head, a line for each movement, its sums. Each line's digest is of the one before too. Pure. */
import { hash } from 'node:crypto';
import { centsTogether, formatUsd } from '../../common/domain/money.ts';

const nanoPerCent = 10_000_000n;

export interface Head {
  readonly format: 'model-gateway statement 1';
  readonly account: string;
  readonly number: number;
  readonly month: string;
  readonly zone: string;
  /** Instants of the month, as ISO texts. */
  readonly from: string;
  readonly until: string;
  /** The digest of the account's statement before; null: it is the first one. */
  readonly previous: string | null;
  /** nano-USD in decimal, as all amounts here. */
  readonly opening: string;
}

/** A movement of money. Members that do not apply are absent. */
export interface Row {
  readonly seq: string;
  /** `2026-10-03T12:00:00.123456Z` */
  readonly at: string;
  readonly kind: string;
  readonly amount: string;
  /** The month that it belongs to, where a statement of that month was sealed without it. */
  readonly corrects?: string;
  /** The kind of a credit: top-up, promotion, … */
  readonly of?: string;
  readonly reference?: string;
  readonly request?: string;
  readonly project?: string;
  readonly person?: string;
  readonly model?: string;
  readonly usage?: Readonly<Record<string, number>>;
  /** nano-USD by class. */
  readonly price?: Readonly<Record<string, string>>;
  readonly price_version?: string;
  readonly tier?: string;
  readonly ratio?: string;
  readonly reason?: string;
}

/** What rows are summed up by. */
type Sorts = Pick<Row, 'kind' | 'of' | 'project' | 'person' | 'model' | 'corrects'>;

interface Sum extends Sorts {
  readonly rows: number;
  readonly amount: string;
  /** In whole cents: with the opening balance these add up to the closing one. */
  readonly usd: string;
}

/** What is to be paid of a month of a credit line when the statement's month ends. */
export interface Due {
  readonly month: string;
  /** The end of that month, and until when it is to be paid, as ISO texts. */
  readonly until: string;
  readonly due_at: string;
  readonly used: string;
  readonly paid: string;
  readonly due: string;
  readonly state: 'due' | 'overdue';
}

export type DueMonth = Pick<Due, 'month' | 'until' | 'due_at' | 'used' | 'paid'>;

export interface Summary {
  readonly rows: number;
  readonly lines: readonly Sum[];
  readonly opening: { readonly amount: string; readonly usd: string };
  readonly closing: { readonly amount: string; readonly usd: string };
  /** Absent: nothing of a credit line is to be paid. */
  readonly credit?: readonly Due[];
}

/** Writes lines, or with the same values what lines are compared with. */
export class StatementLines {
  readonly #opening: bigint;
  readonly #until: string;
  readonly #sums = new Map<string, { readonly by: Sorts; rows: number; amount: bigint }>();
  #amount = 0n;
  rows = 0;
  /** The digest of the last line. */
  digest = '';
  readonly first: string;

  constructor(head: Head) {
    this.#opening = BigInt(head.opening);
    this.#until = head.until;
    this.first = this.line(head);
  }

  row(row: Row): string {
    this.count(row);
    return this.line(row);
  }

  count(row: Row): void {
    const by = sortsOf(row);
    const key = JSON.stringify(by);
    const sum = this.#sums.get(key) ?? { by, rows: 0, amount: 0n };
    this.#sums.set(key, sum);
    sum.rows += 1;
    sum.amount += BigInt(row.amount);
    this.rows += 1;
    this.#amount += BigInt(row.amount);
  }

  line(value: object): string {
    this.digest = hash('sha256', `${this.digest}\n${JSON.stringify(value)}`);
    return JSON.stringify({ ...value, digest: this.digest });
  }

  get closing(): bigint {
    return this.#opening + this.#amount;
  }

  /** `months`: those of a credit line that are not paid, oldest first. */
  summary(months: readonly DueMonth[] = []): Summary {
    const sums = [...this.#sums].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, sum]) => sum);
    const [opening, ...cents] = centsTogether([this.#opening, ...sums.map(({ amount }) => amount)]);
    const lines = sums.map(({ by, rows, amount }, index) => ({
      ...{ ...by, rows, amount: String(amount) },
      usd: usdOf(cents[index]!),
    }));
    const closing = cents.reduce((sum, each) => sum + each, opening!);
    return {
      rows: this.rows,
      lines,
      opening: { amount: String(this.#opening), usd: usdOf(opening!) },
      closing: { amount: String(this.closing), usd: usdOf(closing) },
      ...(months.length === 0 ? {} : { credit: months.map((each) => dueOf(each, this.#until)) }),
    };
  }
}

function dueOf({ month, until, due_at, used, paid }: DueMonth, end: string): Due {
  const due = String(BigInt(used) - BigInt(paid));
  return { month, until, due_at, used, paid, due, state: Date.parse(due_at) <= Date.parse(end) ? 'overdue' : 'due' };
}

const usdOf = (cents: bigint): string => formatUsd(cents * nanoPerCent);

/** Charges by project, person and model; credits by their kind; the others by what they are. */
function sortsOf({ kind, of, project = '', person = '', model = '', corrects }: Row): Sorts {
  return {
    kind,
    ...(of === undefined ? {} : { of }),
    ...(kind === 'CHARGE' ? { project, person, model } : {}),
    ...(corrects === undefined ? {} : { corrects }),
  };
}
