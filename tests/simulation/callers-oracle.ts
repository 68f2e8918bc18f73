/** Watches API keys (M15): none admits anybody a second after it was revoked, past its end, or beyond what it may spend. */
import type { SettleRecord } from '../../plugins/billing/model/records.ts';
import type { StoredKey } from './memory-callers.ts';
import type { Life, Schedule } from './schedule.ts';
import { coverOf } from './tariff.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** A change is known everywhere so soon after its commit, wherever the database can be reached. */
const knownWithinMs = 1_000;
/** What other processes have charged by a key is known after so long; and how long it may be asked for. */
const spendKnownWithinMs = 5_000 + 1_000;

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

/** What a key has spent by one process: the sums of its charges, as the ledger came to have them. */
interface Recorded {
  readonly at: number;
  readonly sum: bigint;
}

interface KeyView {
  readonly versions: Version[];
  /** By process: when it was asked for first there, what ended there, and what runs there. */
  readonly firstAt: Map<Life, number>;
  readonly ended: Map<Life, bigint>;
  readonly running: Map<Life, Set<Trace>>;
  readonly recorded: Map<Life, Recorded[]>;
}

/** A call that auth has let in. */
interface Entry {
  readonly key: KeyView;
  readonly keyId: string;
  readonly at: number;
  /** What its process had charged by the key then, and the calls by it that ran there with their money set aside. */
  readonly spentHere: bigint;
  readonly beside: readonly Trace[];
  /** What it may spend by any terms that may be believed; undefined: whatever there is. */
  readonly caps: readonly (bigint | undefined)[];
}

export class CallersOracle {
  /** Reads of the database may fail: then what others have charged may stay unknown for longer. */
  areReadsSure = true;
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
    else {
      const none = { firstAt: new Map(), ended: new Map(), running: new Map(), recorded: new Map() };
      this.#keys.set(id, { versions: [version], ...none });
    }
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
    const { node, life } = trace;
    const believed = key.versions.filter((_, index) => this.#isBelieved(key, index, node));
    const admitting = believed.filter(({ isRevoked, expiresAt }) => !isRevoked && expiresAt > wallMs);
    if (admitting.length === 0) {
      const why = key.versions.at(-1)!.isRevoked ? 'revoked' : 'expired';
      const ageMs = Math.round(this.#schedule.now - key.versions.at(-1)!.from);
      this.#violations.add('M15', keyId, `${why}, and let ${trace.id} in ${ageMs} ms after its last change`);
    }
    const caps = admitting.map(({ cap }) => cap);
    // A process that has no reason to know what a key spends begins to ask with the first that has.
    if (caps.some((each) => each !== undefined) && !key.firstAt.has(life)) key.firstAt.set(life, this.#schedule.now);
    const spentHere = key.ended.get(life) ?? 0n;
    // What was let in before there was a cap counts from its end on.
    const beside = [...(key.running.get(life) ?? [])].filter(
      (other) => this.#entries.get(other)?.caps.includes(undefined) === false,
    );
    this.#entries.set(trace, { key, keyId, at: this.#schedule.now, spentHere, beside, caps });
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

  /** Money was set aside for it: then its key's cap covers it beside all that its process must know of. */
  held(trace: Trace): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    const { key, keyId, caps, at, spentHere, beside } = entry;
    // Others may have been set while it waited.
    const later = key.versions.filter(({ from }) => from > at).map(({ cap }) => cap);
    const cap = mostOf([...caps, ...later]);
    const cover = firstCover(trace);
    const running = key.running.get(trace.life) ?? new Set();
    key.running.set(trace.life, running.add(trace));
    if (cap === undefined || cover === 0n) return;
    let known = spentHere;
    for (const other of beside) if (!other.ended) known += firstCover(other);
    known += this.#recordedElsewhere(entry, trace);
    if (known + cover > cap)
      this.#violations.add('M15', keyId, `${known} nano-USD of ${cap} are spent, and ${cover} more were let in`);
  }

  /** What the ledger had of other processes when this one must have read it last. */
  #recordedElsewhere({ key, at }: Entry, { life, node }: Trace): bigint {
    const firstAt = key.firstAt.get(life) ?? at;
    const isSure = this.areReadsSure && !this.#wasAway(node, at - 2 * spendKnownWithinMs);
    const readAt = isSure ? Math.max(firstAt, at - spendKnownWithinMs) : firstAt;
    let sum = 0n;
    for (const [other, recorded] of key.recorded) {
      if (other === life) continue;
      sum += recorded.findLast((each) => each.at <= readAt)?.sum ?? 0n;
    }
    return sum;
  }

  #wasAway(node: number, since: number): boolean {
    return (this.#absences.get(node) ?? []).some(({ to }) => to > since);
  }

  ended(trace: Trace): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    this.#entries.delete(trace);
    const { key } = entry;
    key.running.get(trace.life)?.delete(trace);
    key.ended.set(trace.life, (key.ended.get(trace.life) ?? 0n) + (trace.expected ?? 0n));
  }

  /** The ledger has a charge. */
  charged({ key: keyId, cost }: SettleRecord, life: Life | undefined): void {
    const key = this.#keys.get(keyId);
    if (key === undefined || life === undefined) return;
    const recorded = key.recorded.get(life) ?? [];
    key.recorded.set(life, recorded);
    recorded.push({ at: this.#schedule.now, sum: (recorded.at(-1)?.sum ?? 0n) + BigInt(cost) });
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
