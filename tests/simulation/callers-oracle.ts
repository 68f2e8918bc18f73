/** Watches API keys (M15): none admits anybody a second after it was revoked, past its end, or, over all processes, beyond what it may spend. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import { nodeName } from './absences.ts';
import { BudgetsOracle, type Who } from './budgets-oracle.ts';
import { Ceiling, firstCover } from './ceiling.ts';
import type { StoredKey } from './memory-callers.ts';
import type { Schedule } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** A key's terms from a commit on. */
interface Version {
  readonly from: number;
  readonly isRevoked: boolean;
  /** Wall-clock milliseconds. */
  readonly expiresAt: number;
  /** undefined: it may spend whatever its account has. */
  readonly cap: bigint | undefined;
}

interface KeyView extends Who {
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
  /** The end of a call that the ledger has. */
  endOf: (id: string) => EndRecord | undefined = () => undefined;
  readonly #schedule: Schedule;
  readonly #violations: Violations;
  readonly #keys = new Map<string, KeyView>();
  readonly #entries = new Map<Trace, Entry>();
  readonly budgets: BudgetsOracle;

  constructor(schedule: Schedule, violations: Violations) {
    this.budgets = new BudgetsOracle(schedule, violations);
    this.#schedule = schedule;
    this.#violations = violations;
  }

  /** A key's row was committed. */
  wrote({ id, revokedAt, expiresAt, capAmount, person, tags }: StoredKey): void {
    const version: Version = {
      from: this.#schedule.now,
      isRevoked: revokedAt !== null,
      expiresAt: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
      cap: capAmount ?? undefined,
    };
    const known = this.#keys.get(id);
    if (known !== undefined) known.versions.push(version);
    else {
      const who = { person: person ?? undefined, isTagged: tags !== null };
      this.#keys.set(id, { ...who, versions: [version], ceiling: new Ceiling() });
    }
  }

  /** Somebody learned that it is revoked: then it is. */
  reportedRevoked(id: string): void {
    if (this.#keys.get(id)?.versions.at(-1)?.isRevoked !== true)
      this.#violations.add('M15', id, 'was said to be revoked, and is not');
  }

  /** The node cannot reach the database until `back` is called. */
  away(node: number): () => void {
    return this.budgets.absences.begin(nodeName(node));
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
    this.budgets.admitted(trace, key);
  }

  /** The terms may still be taken for true at the node: no one had the time to tell it of others. */
  #isBelieved({ versions }: KeyView, index: number, node: number): boolean {
    const next = versions[index + 1];
    return next === undefined || this.budgets.absences.mayNotKnow([nodeName(node)], next.from);
  }

  /** Money was set aside for it: within its key's cap, and all budgets. */
  held(trace: Trace): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    const { key, keyId, caps, at } = entry;
    // Others may have been set while it waited.
    const later = key.versions.filter(({ from }) => from > at).map(({ cap }) => cap);
    const cap = mostOf([...caps, ...later]);
    const cover = firstCover(trace);
    const { spent, beyond } = key.ceiling.taken(this.endOf);
    if (cap !== undefined && cover !== 0n && spent + cover > cap + beyond) {
      const what = `${spent} nano-USD of ${cap} are spent of the cap of a key, ${beyond} beyond holds, and ${cover} more were let in`;
      this.#violations.add('M15', keyId, what);
    }
    key.ceiling.add(trace, !caps.includes(undefined));
    this.budgets.held(trace);
  }
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
