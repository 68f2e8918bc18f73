/** Watches calls that carry an Idempotency-Key (M11): one charge, one answer, no twin beside a running one, no other body. */
import type { MemoryLedger } from './memory-ledger.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** What one key of one account was used for. */
interface KeyView {
  readonly traces: Trace[];
  /** The answers that were given under it for the first time. */
  readonly answers: Set<string>;
}

export class KeysOracle {
  readonly #violations: Violations;
  readonly #keys = new Map<string, KeyView>();
  readonly #keyOf = new Map<Trace, { readonly view: KeyView; readonly body: string }>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  arrived(trace: Trace, key: string, body: string): void {
    const id = `${trace.account} ${key}`;
    const view = this.#keys.get(id) ?? { traces: [], answers: new Set() };
    this.#keys.set(id, view);
    view.traces.push(trace);
    this.#keyOf.set(trace, { view, body });
  }

  /** It runs: so no other of its key may, and none with another body may have. */
  aimed(trace: Trace): void {
    const keyed = this.#keyOf.get(trace);
    if (keyed === undefined || trace.tries.length > 1) return;
    for (const other of keyed.view.traces) {
      if (other === trace || other.tries.length === 0) continue;
      if (!other.ended && other.life.alive) this.#violations.add('M11', trace.id, 'runs beside its twin');
      const mayHaveRun = other.tries.some(({ state, received }) => received && state !== 'refused');
      // What a process that died had not written to the database yet is judged by its charge alone.
      if (mayHaveRun && other.ended && other.life.alive) {
        this.#violations.add('M11', trace.id, 'runs although its twin may have run');
      }
    }
  }

  /** The client was given a whole answer by a vendor, or one that was given before. */
  answered(trace: Trace, answer: string): void {
    this.#keyOf.get(trace)?.view.answers.add(answer);
  }

  repeated(trace: Trace, answer: string): void {
    const keyed = this.#keyOf.get(trace)!;
    if (!keyed.view.answers.has(answer))
      this.#violations.add('M11', trace.id, 'got an answer that no one was given before');
    const first = keyed.view.traces.find(({ id }) => answer.startsWith(id));
    if (first !== undefined && this.#keyOf.get(first)!.body !== keyed.body) {
      this.#violations.add('M11', trace.id, 'got the answer to another body');
    }
  }

  /** At the end: one charge for each key. */
  finish(ledger: MemoryLedger): void {
    for (const { traces } of this.#keys.values()) {
      const charged = traces.filter(({ id }) => ledger.callOf(id)?.kind === 'SETTLE');
      if (charged.length > 1) this.#violations.add('M11', charged[1]!.id, `${charged.length} charges under one key`);
    }
  }
}
