/** Watches tries that run side by side: who may have a second one, when, how often, and what becomes of the one that loses. */
import type { Life, Schedule } from './schedule.ts';
import type { Trace, Try } from './trace.ts';
import type { Violations } from './violations.ts';

/** What the gateway's file says. */
export interface HedgeRules {
  /** Share of the calls that may have a second try. */
  readonly share: number;
  /** Calls that a process may have under way at one vendor; undefined: as many as come. */
  readonly places: number | undefined;
  /** What tries that may have run may cost where another one follows; 0: none follows. */
  readonly absorb: number;
}

/** Hedges are counted against the calls of the last minutes; no process of a world lives as long. */
const shareWindowMs = 270_000;
/** Sums of virtual times are not exact. */
const hairMs = 1e-6;

/** One process. */
interface ProcessState {
  readonly startedAt: number;
  /** Calls that may have had a second try, and those that had. */
  calls: number;
  hedges: number;
  /** By vendor: what it works on. */
  readonly atWork: Map<string, Set<Try>>;
}

export class HedgeOracle {
  /** undefined: no one hedges here. */
  rules: HedgeRules | undefined;
  /** Second tries, and those of them that answered first. */
  begunCount = 0;
  wonCount = 0;
  readonly #schedule: Schedule;
  readonly #violations: Violations;
  readonly #byAccount = new Map<Life, ProcessState>();
  readonly #hedges = new Map<Trace, Try>();

  constructor(schedule: Schedule, violations: Violations) {
    this.#schedule = schedule;
    this.#violations = violations;
  }

  begun(life: Life): void {
    this.#byAccount.set(life, { startedAt: this.#schedule.now, calls: 0, hedges: 0, atWork: new Map() });
  }

  died(life: Life): void {
    this.#byAccount.delete(life);
  }

  arrived(trace: Trace): void {
    if (trace.hedgeAfterMs !== undefined) this.#byAccount.get(trace.life)!.calls += 1;
  }

  /** It came to the limiter or the money, and no further. */
  turnedAway(trace: Trace): void {
    if (trace.hedgeAfterMs !== undefined && trace.tries.length === 0) this.#byAccount.get(trace.life)!.calls -= 1;
  }

  /** A try begins: of those before it one may run still, if this is a hedge, and no other may have run. */
  aimed(trace: Trace, attempt: Try): void {
    const earlier = trace.tries.filter((other) => other !== attempt);
    const running = earlier.filter(({ isRacing, over }) => isRacing && !over);
    const ended = earlier.filter((other) => !running.includes(other));
    const mayHaveRun = ended.filter(({ state, billed }) => billed || state === 'broken' || state === 'answered');
    const isAllowed = trace.isPure && this.rules?.absorb !== 0 && mayHaveRun.every(({ state }) => state === 'broken');
    if (mayHaveRun.length > 0 && !isAllowed)
      this.#violations.add('M10', trace.id, 'tried again although an earlier try may have run');
    const same = earlier.filter(
      ({ credential, target }) => credential === attempt.credential && target === attempt.target,
    );
    // The vendor of the only one that broke off is tried once more where nothing else is left.
    const isRepeat = same.length === 1 && mayHaveRun.length === 1 && mayHaveRun[0]!.provider === attempt.provider;
    if (same.length > 0 && !isRepeat)
      this.#violations.add('route', trace.id, `tried with ${attempt.credential} for the second time`);
    if (running.length > 1) this.#violations.add('M10', trace.id, 'three tries run at once');
    if (running[0] !== undefined) this.#hedged(trace, attempt, running[0]);
  }

  #hedged(trace: Trace, attempt: Try, first: Try): void {
    const { hedgeAfterMs, stream, life, id } = trace;
    if (hedgeAfterMs === undefined) {
      this.#violations.add('M10', id, 'tried beside another try, which it must not');
      return;
    }
    if (this.#hedges.has(trace)) this.#violations.add('M10', id, 'tried beside another try for the second time');
    this.#hedges.set(trace, attempt);
    this.begunCount += 1;
    const silentMs = this.#schedule.now - first.at;
    if (silentMs < hedgeAfterMs - hairMs)
      this.#violations.add('M10', id, `tried beside one that was silent for ${silentMs} of ${hedgeAfterMs} ms`);
    if (first.headed && !stream) this.#violations.add('M10', id, 'tried beside one whose answer was on its way');
    const book = this.#byAccount.get(life)!;
    book.hedges += 1;
    const isKnown = this.#schedule.now - book.startedAt < shareWindowMs;
    if (isKnown && book.hedges > this.rules!.share * book.calls)
      this.#violations.add('M10', id, `${book.hedges} of ${book.calls} calls were tried twice at once`);
  }

  /** It is handed to a socket. */
  departs(trace: Trace): void {
    if (trace.clientLeft) this.#violations.add('route', trace.id, 'is sent although its client has left');
  }

  /** A vendor has it. */
  received(trace: Trace, attempt: Try): void {
    const most = this.#hedges.has(trace) ? 2 : 1;
    const isBilled = ({ billed, state }: Try) => billed && !(trace.isPure && state === 'broken');
    if (trace.tries.filter(isBilled).length > most)
      this.#violations.add('M10', trace.id, `more than ${most} tries of one request stand on vendors’ bills`);
    const places = this.rules?.places;
    const atWork = this.#byAccount.get(trace.life)?.atWork;
    if (places === undefined || atWork === undefined) return;
    const there = new Set([...(atWork.get(attempt.provider) ?? [])].filter(({ over }) => !over)).add(attempt);
    atWork.set(attempt.provider, there);
    if (there.size > places)
      this.#violations.add('limit', attempt.provider, `works on ${there.size} calls at once, ${places} are allowed`);
  }

  /** The client has left while this try ran, if one did. `goesOn`: what it asked for is finished all the same. */
  left(trace: Trace, running: Try | undefined, goesOn: boolean): void {
    const isReadOn = running?.isDrained === true && running.hasLeft;
    if (goesOn !== isReadOn)
      this.#violations.add('route', trace.id, `its client has left, and it ${goesOn ? 'goes on' : 'is cut off'}`);
  }

  /** The client is given the answer of this try: it was the first, and the other is cut off, unless it is to be read on. */
  decided(trace: Trace, attempt: Try | undefined): void {
    const { winner, tries } = trace;
    if (attempt === undefined || attempt !== winner)
      this.#violations.add('route', trace.id, 'got another answer than the first');
    if (winner !== undefined && winner === this.#hedges.get(trace)) this.wonCount += 1;
    for (const other of tries) {
      if (other !== winner && other.state === 'flying' && !other.over && !other.isDrained)
        this.#violations.add('route', trace.id, 'has its answer, and the other try goes on');
    }
  }

  /** All that it took was given back: no vendor works for it any more. */
  ended(trace: Trace): void {
    for (const attempt of trace.tries) {
      if (!attempt.isRacing) attempt.over = true;
      else if (attempt.received && !attempt.over)
        this.#violations.add('route', trace.id, 'is over, and a vendor works on for it');
    }
    this.#hedges.delete(trace);
  }

  /** No one calls any more. `taken`: what a process believes to be under way, by vendor. */
  atRest(taken: readonly (readonly [vendor: string, count: number])[]): void {
    for (const [vendor, count] of taken)
      if (count !== 0) this.#violations.add('limit', vendor, `${count} places are taken, and no one calls`);
  }
}
