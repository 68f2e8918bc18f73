/** Watches tasks (M13): each ends once and with its money, is made once at most, and what vendors bill is in the ledger. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { Entry, MemoryLedger, Row } from './memory-ledger.ts';
import type { TaskRow, TaskTable } from './memory-tasks.ts';
import type { Life } from './schedule.ts';
import type { Studio } from './studio.ts';
import { type Counts, costOf, coverOf, type Fraction, type PriceList } from './tariff.ts';
import type { Violations } from './violations.ts';

/** An order, as its client and the vendors saw it. */
export interface TaskTrace {
  /** Id of the request, also as the vendors receive it. */
  readonly id: string;
  readonly name: string;
  readonly account: string;
  readonly life: Life;
  readonly list: PriceList;
  readonly ratio: Fraction;
  /** Calls that it takes, and the most that can be counted for each. */
  readonly count: number;
  readonly input: number;
  readonly output: number;
  readonly wantsWord: boolean;
  /** Calls that vendors have had: whether they may have made something of them. */
  readonly receipts: boolean[];
  /** `taken`: its client has an id; `refused`: it was refused; undefined: it does not know. */
  reported: 'taken' | 'refused' | undefined;
  /** Its client learned that it is cancelled. */
  isCancelled: boolean;
  /** How often its money was set aside, and how often that ended. */
  holds: number;
  ends: number;
}

const rankOf = {
  queued: 0,
  creating: 1,
  reconciling: 2,
  running: 3,
  copying: 4,
  completed: 5,
  failed: 5,
  cancelled: 5,
};
const official: Fraction = { numerator: 1n, denominator: 1n };
/** Words by which a client knows that something may have been made. */
const unknownCodes = new Set(['outcome_unknown', 'generation_failed', 'expired']);

export class TasksOracle {
  /** By request. */
  readonly traces = new Map<string, TaskTrace>();
  readonly #violations: Violations;
  readonly #byName = new Map<string, TaskTrace>();
  /** A task whose final state is being committed: its money must be next. */
  #ending: string | undefined;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  arrived(trace: TaskTrace): void {
    this.traces.set(trace.id, trace);
    this.#byName.set(trace.name, trace);
  }

  /** A vendor has got an order. */
  received(name: string, mayRun: boolean): void {
    const { id, count, receipts } = this.#byName.get(name)!;
    receipts.push(mayRun);
    const since = receipts.indexOf(true);
    if (since !== -1 && receipts.length - since > count)
      this.#fault('M10', id, 'sent again although it may have been made');
  }

  /** A row was written, and that is committed. */
  wrote(before: TaskRow | undefined, after: TaskRow, now: number): void {
    this.#closeEnding();
    if (before === undefined) return;
    const { requestId, state, lease } = after;
    if (rankOf[state] < rankOf[before.state]) this.#fault('M13', requestId, `${before.state} became ${state}`);
    if (before.dueAt === undefined) this.#fault('M13', requestId, 'changed after its end');
    const isTaken = before.lease !== undefined && lease !== undefined && lease !== before.lease;
    if (isTaken && before.leaseUntil! > now) this.#fault('M13', requestId, 'taken from a worker that is believed');
    if (after.dueAt === undefined) this.#ending = requestId;
  }

  /** An account's money has changed without a call. true: for a task. */
  entry({ kind, request, amount }: Entry): boolean {
    const trace = request === undefined ? undefined : this.traces.get(request);
    if (trace === undefined) return false;
    if (kind === 'HOLD') {
      trace.holds += 1;
      const { input, output } = wholeOf(trace);
      const right = coverOf(input, output, trace.list, trace.ratio);
      if (amount !== -right) this.#fault('M13', trace.id, `${-amount} nano-USD were set aside, ${right} are right`);
      return true;
    }
    trace.ends += 1;
    if (this.#ending === trace.id) this.#ending = undefined;
    else this.#fault('M13', trace.id, `a ${kind} without the task's end`);
    return true;
  }

  #closeEnding(): void {
    if (this.#ending !== undefined) this.#fault('M13', this.#ending, 'ended without its money');
    this.#ending = undefined;
  }

  /** Everything has come to rest. */
  finish(ledger: MemoryLedger, table: TaskTable, vendors: Pick<Studio, 'billOf' | 'brokenOf'>): void {
    this.#closeEnding();
    const tasks = new Map(Array.from(table.tasks.values(), (task) => [task.requestId, task]));
    const rows = new Map<string, Row[]>();
    for (const row of ledger.rows) {
      if (row.request === undefined || !this.traces.has(row.request)) continue;
      const known = rows.get(row.request);
      if (known === undefined) rows.set(row.request, [row]);
      else known.push(row);
    }
    for (const trace of this.traces.values()) {
      const task = tasks.get(trace.id);
      const own = rows.get(trace.id) ?? [];
      if (task === undefined) this.#checkNothing(trace, own);
      else {
        this.#checkEnd(trace, task, table);
        this.#checkMoney(trace, task, own, { vendors, end: ledger.callOf(trace.id) });
        this.#checkAttempts(trace, task, ledger);
      }
    }
    for (const id of ledger.deposits.keys()) this.#fault('M13', id, 'its deposit is still there');
  }

  /** No one has it: then there is no money of it, and no vendor has heard of it. */
  #checkNothing({ id, reported, receipts }: TaskTrace, rows: readonly Row[]): void {
    if (reported === 'taken') this.#fault('M13', id, 'a task that was taken is not there');
    if (rows.length > 0) this.#fault('M13', id, 'money of a task that is not there');
    if (receipts.length > 0) this.#fault('M13', id, 'sent, and no one knows of it');
  }

  #checkEnd({ id, reported, wantsWord, isCancelled, holds, ends }: TaskTrace, task: TaskRow, table: TaskTable) {
    if (holds !== 1 || ends !== 1) this.#fault('M3', id, `${holds} holds and ${ends} ends of a task`);
    if (reported === 'refused') this.#fault('M13', id, 'its client was refused, and it is there');
    if (task.dueAt !== undefined) this.#fault('M13', id, `has no end: it is ${task.state}`);
    if (isCancelled && task.state !== 'cancelled') this.#fault('M13', id, 'was said to be cancelled, and went on');
    if (wantsWord !== table.callbacks.has(task.id)) this.#fault('M13', id, 'the word of its end is not as ordered');
    if (task.state === 'completed' && task.results.length === 0) this.#fault('M13', id, 'completed, and not kept');
  }

  /**
   * One end, one sum: paid by what was made and heard of, or given back; and what vendors bill beside, or may bill for calls
   * that broke off, is the operator's.
   */
  #checkMoney(
    trace: TaskTrace,
    task: TaskRow,
    rows: readonly Row[],
    { vendors, end }: { vendors: Pick<Studio, 'billOf' | 'brokenOf'>; end: EndRecord | undefined },
  ): void {
    const { id, name, list, ratio, count } = trace;
    const [bill, broken] = [vendors.billOf(name), vendors.brokenOf(name)];
    const absorbed = BigInt(end?.absorbed ?? 0);
    let charged = 0n;
    for (const row of rows) {
      charged -= row.amount;
      if (row.account !== trace.account) this.#fault('M3', id, 'a row of another account');
    }
    const heard = bill.filter(({ isHeard }) => isHeard).map(({ counts }) => counts);
    const billed = bill.reduce((sum, { counts }) => sum + costOf(counts, list, official), 0n);
    const beside = BigInt(broken) * costOf(trace, list, official);
    const isPaid = end?.kind === 'SETTLE';
    if (isPaid !== (task.state === 'completed')) this.#fault('M13', id, `${task.state}, and paid: ${isPaid}`);
    if (bill.length > count) this.#fault('M10', id, `made ${bill.length} times, ${count} were ordered`);
    if (task.state === 'completed') {
      const right = costOf(sumOf(heard), list, ratio);
      if (charged !== right || heard.length !== task.results.length)
        this.#fault('M13', id, `charged ${charged}, it must be ${right} for ${heard.length} made`);
      if (absorbed !== beside)
        this.#fault('M5', id, `absorbed ${absorbed}, it must be ${beside} for ${broken} that broke off`);
      return;
    }
    if (charged !== 0n) this.#fault('M13', id, `${task.state}, and charged ${charged}`);
    const isUnknown = task.attempts.at(-1)?.result === 'unknown';
    const borne = isUnknown
      ? costOf(wholeOf(trace), list, official)
      : bill.length === 0
        ? 0n
        : costOf(sumOf(heard), list, official) + beside;
    // Each call's bill is rounded by itself.
    if (absorbed !== borne || billed > absorbed + BigInt(count))
      this.#fault('M5', id, `absorbed ${absorbed} of a bill of ${billed}, it must be ${borne}`);
    const code = task.error?.code ?? '';
    if (isUnknown && !unknownCodes.has(code))
      this.#fault('M13', id, `an outcome that no one knows is reported as ${code}`);
    if (bill.length > 0 && !isUnknown && code !== 'result_lost')
      this.#fault('M13', id, `made, and reported as ${code}`);
  }

  /** The made pieces of an order of several calls are one attempt; the outcome of the others shows in the money. */
  #checkAttempts({ id, receipts, count }: TaskTrace, { departure }: TaskRow, ledger: MemoryLedger): void {
    let known = 0;
    for (let number = 1; number <= departure; number += 1) if (ledger.attempts.has(`${id} ${number}`)) known += 1;
    const least = count === 1 ? receipts.length : Math.min(receipts.length, 1);
    if (known < least) this.#fault('M5', id, `${receipts.length} vendors had it, ${known} are in the ledger`);
  }

  #fault(rule: string, subject: string, what: string): void {
    this.#violations.add(rule, subject, what);
  }
}

/** What all calls of an order can come to. */
function wholeOf({ input, output, count }: TaskTrace): { input: number; output: number } {
  return { input: count * input, output: count * output };
}

function sumOf(all: readonly Counts[]): Counts {
  let [input, output] = [0, 0];
  for (const counts of all) {
    input += counts.input ?? 0;
    output += counts.output ?? 0;
  }
  return { input, output };
}
