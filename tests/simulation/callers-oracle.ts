/** Watches API keys (M15): none admits anybody a second after it was revoked, past its end, or, over all processes, beyond what it may spend. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import { Ceiling, firstCover } from './ceiling.ts';
import type { StoredKey } from './memory-callers.ts';
import type { Schedule } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** A change is known everywhere so soon after its commit, wherever the database can be reached. */
const knownWithinMs = 1_000;
/** A key's terms from a commit on. */
interface Version {
  readonly from: number;
  readonly isRevoked: boolean;
  /** Wall-clock milliseconds. */
  readonly expiresAt: number;
  /** undefined: it may spend whatever its account has. */
  readonly cap: bigint | undefined;
}

/** A time in which a node could not reach the database. */
interface Absence {
  readonly from: number;
  to: number;
}

interface KeyView {
  readonly versions: Version[];
  readonly ceiling: Ceiling;
}

/** A call that auth has let in. */
interface Entry {
  readonly trace: Trace;
  readonly key: KeyView;
  readonly keyId: string;
  readonly at: number;
  /** What it may spend by any terms that may be believed; undefined: whatever there is. */
  readonly caps: readonly (bigint | undefined)[];
}

export class CallersOracle {
  /** What each account may spend; undefined: whatever it has. */
  budget: bigint | undefined;
  /** The end of a call that the ledger has. */
  endOf: (id: string) => EndRecord | undefined = () => undefined;
  readonly #schedule: Schedule;
  readonly #violations: Violations;
  readonly #keys = new Map<string, KeyView>();
  readonly #entries = new Map<Trace, Entry>();
  readonly #accounts = new Map<string, Ceiling>();
  /** By node. */
  readonly #absences = new Map<number, Absence[]>();

  constructor(schedule: Schedule, violations: Violations) {
    this.#schedule = schedule;
    this.#violations = violations;
  }

  /** A key's row was committed. */
  wrote({ id, revokedAt, expiresAt, capAmount }: StoredKey): void {
    const version: Version = {
      from: this.#schedule.now,
      isRevoked: revokedAt !== null,
      expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
      cap: capAmount ?? undefined,
    };
    const known = this.#keys.get(id);
    if (known !== undefined) known.versions.push(version);
    else this.#keys.set(id, { versions: [version], ceiling: new Ceiling() });
  }

  /** Somebody learned that it is revoked: then it is. */
  reportedRevoked(id: string): void {
    if (this.#keys.get(id)?.versions.at(-1)?.isRevoked !== true)
      this.#violations.add('M15', id, 'was said to be revoked, and is not');
  }

  /** The node cannot reach the database until `back` is called. */
  away(node: number): () => void {
    const absence: Absence = { from: this.#schedule.now, to: Number.POSITIVE_INFINITY };
    this.#absences.set(node, [...(this.#absences.get(node) ?? []), absence]);
    return () => {
      absence.to = this.#schedule.now;
    };
  }

  /** A key let a call in. `wallMs`: what the clock of its node says. */
  admitted(trace: Trace, keyId: string, wallMs: number): void {
    const key = this.#keys.get(keyId)!;
    const { node } = trace;
    const believed = key.versions.filter((_, index) => this.#isBelieved(key, index, node));
    const admitting = believed.filter(({ isRevoked, expiresAt }) => !isRevoked && expiresAt > wallMs);
    if (admitting.length === 0) {
      const why = key.versions.at(-1)!.isRevoked ? 'revoked' : 'expired';
      const ageMs = Math.round(this.#schedule.now - key.versions.at(-1)!.from);
      this.#violations.add('M15', keyId, `${why}, and let ${trace.id} in ${ageMs} ms after its last change`);
    }
    const caps = admitting.map(({ cap }) => cap);
    this.#entries.set(trace, { trace, key, keyId, at: this.#schedule.now, caps });
  }

  /** The terms may still be taken for true at the node: no one had the time to tell it of others. */
  #isBelieved({ versions }: KeyView, index: number, node: number): boolean {
    const next = versions[index + 1];
    if (next === undefined) return true;
    let until = next.from + knownWithinMs;
    for (const { from, to } of this.#absences.get(node) ?? []) {
      if (from < until && to + knownWithinMs > until) until = to + knownWithinMs;
    }
    return this.#schedule.now <= until;
  }

  /** Money was set aside for it: within its key's cap, and its account's budget. */
  held(trace: Trace): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    const { key, keyId, caps, at } = entry;
    // Others may have been set while it waited.
    const later = key.versions.filter(({ from }) => from > at).map(({ cap }) => cap);
    const cap = mostOf([...caps, ...later]);
    this.#check('the cap of a key', keyId, { ceiling: key.ceiling, amount: cap, trace });
    key.ceiling.add(trace, !caps.includes(undefined));
    const account = this.#accounts.get(trace.account) ?? new Ceiling();
    this.#accounts.set(trace.account, account);
    this.#check('the budget of an account', trace.account, { ceiling: account, amount: this.budget, trace });
    account.add(trace, true);
  }

  /** What is set aside for a call is within the ceiling, beside all that is spent and set aside in any process. */
  #check(name: string, id: string, { ceiling, amount, trace }: Checked): void {
    const cover = firstCover(trace);
    const { spent, beyond } = ceiling.taken(this.endOf);
    if (amount === undefined || cover === 0n || spent + cover <= amount + beyond) return;
    const what = `${spent} nano-USD of ${amount} are spent of ${name}, ${beyond} beyond holds, and ${cover} more were let in`;
    this.#violations.add('M15', id, what);
  }
}

interface Checked {
  readonly ceiling: Ceiling;
  /** undefined: there is none. */
  readonly amount: bigint | undefined;
  readonly trace: Trace;
}

/** undefined: one of them is no cap at all. */
function mostOf(caps: readonly (bigint | undefined)[]): bigint | undefined {
  let most = 0n;
  for (const cap of caps) {
    if (cap === undefined) return undefined;
    if (cap > most) most = cap;
  }
  return most;
}
