/** Watches API keys (M15): none admits anybody a second after it was revoked, past its end, or, over all processes, beyond what it may spend. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { StoredKey } from './memory-callers.ts';
import { costIn } from './memory-records.ts';
import type { Schedule } from './schedule.ts';
import { coverOf } from './tariff.ts';
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
  /** Calls by the key whose money was set aside, of which the ledger has no end. */
  readonly open: Set<Entry>;
  /** What others came to, and what of it no one could know before their ends: beyond their holds, or without a cap. */
  spent: bigint;
  beyond: bigint;
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
    else this.#keys.set(id, { versions: [version], open: new Set(), spent: 0n, beyond: 0n });
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

  /** Money was set aside for it: then its key's cap covers it beside all that is spent and set aside by the key, in any process. */
  held(trace: Trace): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    const { key, keyId, caps, at } = entry;
    // Others may have been set while it waited.
    const later = key.versions.filter(({ from }) => from > at).map(({ cap }) => cap);
    const cap = mostOf([...caps, ...later]);
    const cover = firstCover(trace);
    this.#post(key);
    const { spent, beyond } = this.#taken(key);
    key.open.add(entry);
    if (cap === undefined || cover === 0n || spent + cover <= cap + beyond) return;
    const what = `${spent} nano-USD of ${cap} are spent, ${beyond} beyond holds, and ${cover} more were let in`;
    this.#violations.add('M15', keyId, what);
  }

  /** Calls of which the ledger has the end. */
  #post(key: KeyView): void {
    for (const entry of key.open) {
      const end = this.endOf(entry.trace.id);
      if (end === undefined) continue;
      key.open.delete(entry);
      this.#entries.delete(entry.trace);
      const cost = costIn(end);
      const held = entry.caps.includes(undefined) ? 0n : BigInt(end.held);
      key.spent += cost;
      if (cost > held) key.beyond += cost - held;
    }
  }

  /** All that is spent, and set aside at least. The end of a call that a crash cut off is known when the ledger has it. */
  #taken({ open, ...key }: KeyView): { readonly spent: bigint; readonly beyond: bigint } {
    let { spent, beyond } = key;
    for (const { trace, caps } of open) {
      const isHeld = !caps.includes(undefined);
      const held = isHeld ? firstCover(trace) : 0n;
      const cost = trace.ended && trace.crash === undefined ? trace.expected! : held;
      spent += cost;
      if (cost > held) beyond += cost - held;
    }
    return { spent, beyond };
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

/** What is set aside for a call at its beginning, at least. */
function firstCover({ inputTokens, heldOutput, list, ratio }: Trace): bigint {
  return coverOf(inputTokens, heldOutput, list, ratio);
}
