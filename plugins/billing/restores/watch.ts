/**
 * Notices a database that was put back to an earlier time, and keeps money from coming in until an operator has accepted
 * that: what came in since is in no journal.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { alertEvents } from '../../common/domain/admin/alerts.ts';
import type { Database } from '../../common/domain/database.ts';
import { formatUsd, money } from '../../common/domain/money.ts';
import type { AuditReport } from '../audit/audit.ts';
import type { Movement } from '../ledger/entries.ts';
import { Memory, mostMovements } from './memory.ts';
import type { Restore, RestoreRows } from './rows.ts';

/** Clocks of processes differ, and rows are committed later than they are dated. */
const overlapMs = 600_000;
/** How far back an empty directory reads existing movements. */
const firstReachMs = 40 * 86_400_000;
const markEveryMs = 10_000;
const readEveryMs = 5_000;
const askWhileWaitingMs = 5_000;
const askMs = 60_000;
/** References of one statement. */
const pageSize = 500;

const acceptCommand = 'gateway audit --accept-restore';
const moneyInRefused = `the database was put back to an earlier time: credits, refunds, codes and payments get 503 until an operator runs "${acceptCommand}"`;

/** The start's findings about the journal. */
export interface JournalState {
  readonly journal: string;
  /** The database's cursor before the journal was replayed. */
  readonly applied: number;
  /** The journal has lines of a later run than the database knows. */
  readonly isAhead: boolean;
  /** Ended calls beyond the cursor. */
  readonly calls: number;
}

export interface WatchOptions {
  readonly host: Host;
  readonly rows: RestoreRows;
  /** Directory of the journal, which holds its name. */
  readonly journal: string;
}

export class RestoreWatch {
  readonly rows: RestoreRows;
  readonly #host: Host;
  readonly #journal: string;
  #memory: Promise<Memory> | undefined;
  /** References that the memory has. */
  readonly #known = new Set<string>();
  #readUntil = Number.NEGATIVE_INFINITY;
  #isStale = false;
  #marked = { applied: -1, at: Number.NEGATIVE_INFINITY };
  #opened: Memory | undefined;
  #hasFailed = false;
  #looked: Promise<void> | undefined;
  #isWaiting = false;
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor({ host, rows, journal }: WatchOptions) {
    this.#host = host;
    this.rows = rows;
    this.#journal = journal;
  }

  /** Rejects with 503 while a restoration waits for an operator. */
  async admit(): Promise<void> {
    // A command may run before any gateway has been started on the database that was put back.
    if (this.#host.mode !== 'serve') await this.look();
    await this.#ask();
    if (this.#isWaiting) throw refusal();
  }

  /** The text of `/readyz` while one waits, as of the last look: this process or another may have found it. */
  refuses(): Record<string, string> {
    return this.#isWaiting ? { money_in: moneyInRefused } : {};
  }

  async #ask(): Promise<void> {
    this.#checkedAt = this.#host.clock.monotonic();
    this.#isWaiting = (await this.rows.list('waiting')).length > 0;
  }

  #askAgain(): Promise<void> | undefined {
    const everyMs = this.#isWaiting ? askWhileWaitingMs : askMs;
    return this.#host.clock.monotonic() - this.#checkedAt < everyMs ? undefined : this.#ask();
  }

  /** For commands: finds what this directory remembers and the database lacks. */
  look(): Promise<void> {
    this.#looked ??= this.#tolerant(() => this.#find(undefined));
    return this.#looked;
  }

  /** At a start that serves, before anything of the journal is applied. */
  async begin(state: JournalState): Promise<void> {
    await this.#tolerant(() => this.#find(state));
    await this.#tolerant(() => this.#ask());
  }

  async #find(state: JournalState | undefined): Promise<void> {
    const memory = await this.#open();
    const mark = memory.mark();
    const remembered = memory.movements();
    const lost = await this.lostOf(remembered);
    if (state !== undefined) await this.#readNew(memory, remembered);
    const isBack = state !== undefined && mark?.journal === state.journal && mark.applied > state.applied;
    if (lost.length === 0 && !isBack && state?.isAhead !== true) return;
    const until = Math.max(mark?.at ?? 0, ...lost.map(({ at }) => at));
    const now = this.#host.clock.now();
    const since = await this.rows.newest();
    const found = {
      journal: state?.journal ?? nameIn(this.#journal),
      since: Math.min(since ?? 0, ...lost.map(({ at }) => at)),
      until: until === 0 ? now : until,
      calls: state?.calls ?? 0,
      lost,
    };
    await this.rows.note(found);
    this.#report(found);
  }

  /**
   * The movements among these that the database lacks and that no operator has accepted as lost. Newest first: the first one found
   * in the database ends the search.
   */
  async lostOf(remembered: readonly Movement[]): Promise<Movement[]> {
    const lost: Movement[] = [];
    for (let end = remembered.length; end > 0; end -= pageSize) {
      const page = remembered.slice(Math.max(0, end - pageSize), end);
      const lacking = await this.rows.lacking(page.map(({ reference }) => reference));
      lost.unshift(...page.filter(({ reference }) => lacking.has(reference)));
      if (lacking.size === 0) break;
    }
    if (lost.length === 0) return lost;
    const accepted = (await this.rows.list('accepted')).flatMap((each) => each.lost.map(({ reference }) => reference));
    const known = new Set(accepted);
    return lost.filter(({ reference }) => !known.has(reference));
  }

  #report(found: Restore): void {
    const { log } = this.#host;
    const fields = { journal: found.journal, ...spanOf(found), replayed: found.calls, lost: found.lost.length };
    log.warn(
      fields,
      `the database was put back to an earlier time: ${sentenceOf(found)}; money-in is refused until an operator runs "${acceptCommand}"`,
    );
    this.#host.find(alertEvents)?.report('database_restored', 'database', { lost: found.lost.length });
  }

  // --------------------------------------------------------------------------------------------------------- remembering

  /** The database has acknowledged these movements of this process. */
  async add(movements: readonly Movement[]): Promise<void> {
    await this.#tolerant(async () => this.#remember(await this.#open(), movements));
  }

  /** From now on remembers what other processes move, too. */
  listen(store: Database): void {
    store.onChange('account', () => {
      this.#isStale = true;
    });
    this.#host.every(readEveryMs, 'remember movements of money', () => this.#readHeard());
    this.#host.every(askWhileWaitingMs, 'ask for restorations that wait', () => this.#askAgain());
  }

  #readHeard(): Promise<void> | undefined {
    // A command keeps what itself has moved.
    if (!this.#isStale || !Number.isFinite(this.#readUntil)) return undefined;
    this.#isStale = false;
    return this.#tolerant(async () => {
      const since = this.#readUntil - overlapMs;
      await this.#remember(await this.#open(), await this.rows.movementsSince(since, mostMovements));
      this.#readUntil = this.#host.clock.now();
    });
  }

  /** The database has the journal up to there. Written now and then; `isLast`: at once. */
  applied(sequence: number, isLast = false): void {
    const memory = this.#opened;
    if (memory === undefined || sequence <= this.#marked.applied) return;
    const at = this.#host.clock.now();
    if (!isLast && at - this.#marked.at < markEveryMs) return;
    this.#marked = { applied: sequence, at };
    void this.#tolerant(async () => memory.setMark({ journal: nameIn(this.#journal), applied: sequence, at }));
  }

  async #readNew(memory: Memory, remembered: readonly Movement[]): Promise<void> {
    for (const { reference } of remembered) this.#known.add(reference);
    const now = this.#host.clock.now();
    const from = (remembered.at(-1)?.at ?? now - firstReachMs) - overlapMs;
    await this.#remember(memory, await this.rows.movementsSince(from, mostMovements));
    this.#readUntil = now;
  }

  async #remember(memory: Memory, movements: readonly Movement[]): Promise<void> {
    const unknown = movements.filter(({ reference }) => !this.#known.has(reference));
    await memory.add(unknown);
    for (const { reference } of unknown) this.#known.add(reference);
    // Only recent ones are read again.
    for (const reference of this.#known) {
      if (this.#known.size <= 4 * mostMovements) break;
      this.#known.delete(reference);
    }
  }

  #open(): Promise<Memory> {
    this.#memory ??= this.rows.identity().then((identity) => {
      this.#opened = new Memory(this.#host.directory, this.#host.schema, identity);
      return this.#opened;
    });
    return this.#memory;
  }

  /** Money has moved or calls go on, so a memory that cannot be kept is no failure of theirs. */
  async #tolerant(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#hasFailed = false;
    } catch (error) {
      this.#memory = undefined;
      if (!this.#hasFailed) {
        this.#host.log.warn(
          { error },
          'what the database has acknowledged could not be compared or kept beside the journal',
        );
      }
      this.#hasFailed = true;
    }
  }
}

function refusal(): GatewayError {
  const message =
    'The database of this gateway was put back to an earlier time, so no money can be added until its operator has checked the missing movements. Nothing was booked; try again later.';
  return new GatewayError('overloaded', message, { code: 'restore_not_accepted', retryAfterMs: 300_000 });
}

function nameIn(directory: string): string {
  try {
    return readFileSync(join(directory, 'name'), 'utf8').trim();
  } catch {
    return 'commands';
  }
}

function spanOf({ since, until }: Restore): { since: string; until: string } {
  return { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
}

/** The missing movements, for people. */
export function sentenceOf(found: Restore): string {
  const { since, until } = spanOf(found);
  const sum = money(found.lost.reduce((total, { amount }) => total + BigInt(amount), 0n));
  const lost = `${found.lost.length} movements of money are missing (${formatUsd(sum)} USD in sum)`;
  return `what happened from ${since} to ${until} may be missing; ${found.calls} ended calls are charged from the journal; ${lost}`;
}

type Audit = (days?: number) => Promise<AuditReport>;

/** The audit, with each restoration that waits for an operator. */
export function auditWith(rows: RestoreRows | undefined, audit: Audit): Audit {
  return async (days) => {
    const report = await audit(days);
    const waiting = (await rows?.list('waiting')) ?? [];
    const violations = waiting.map((found) => ({
      rule: 'R1',
      what: `the database was put back to an earlier time, and money-in is refused until "${acceptCommand}"`,
      subject: `${sentenceOf(found)} (found by ${found.journal})`,
    }));
    return { ...report, ok: report.ok && waiting.length === 0, violations: [...violations, ...report.violations] };
  };
}
