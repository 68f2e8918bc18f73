/** Runs the transforms of one answer in turn and checks the events that they return. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Event, Reply } from '../../common/canonical/reply.ts';
import { usageReport } from '../../common/domain/calls.ts';
import type { AnswerTransform, CallTransform } from '../../common/wire/call-transforms.ts';
import { LiveReport } from '../metering/report.ts';
import { Steps } from './steps.ts';

interface Named {
  readonly name: string;
  readonly transform: AnswerTransform;
}

/** Whether some of the transforms reads the prompt of this call. */
export function readsPrompt(all: readonly CallTransform[], exchange: Exchange): boolean {
  return all.some((transform) => transform.applies?.(exchange) ?? true);
}

/** The first in the list is nearest to the client: it gets prompts first and answers last. */
export function answerTransforms(
  exchange: Exchange,
  transforms: readonly CallTransform[],
): AnswerTransforms | undefined {
  const active: Named[] = [];
  for (const one of transforms) {
    const transform = one.answer?.(exchange);
    if (transform !== undefined) active.unshift({ name: one.name, transform });
  }
  return active.length === 0 ? undefined : new AnswerTransforms(active, exchange);
}

export class AnswerTransforms {
  readonly #all: readonly Named[];
  readonly #exchange: Pick<Exchange, 'find' | 'log'>;
  readonly #order = new EventOrder();
  readonly #steps = new Steps();
  #hasFailed = false;
  #isEnding = false;
  #last: Event | undefined;

  constructor(all: readonly Named[], exchange: Pick<Exchange, 'find' | 'log'>) {
    this.#all = all;
    this.#exchange = exchange;
  }

  /** A transform has ended the answer. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /**
   * Gives the events that replace this one: at once, or in order when the transforms that wait are done. `isWhole`: transforms
   * with a `reply` get the whole answer instead.
   */
  event(event: Event, isWhole: boolean, give: (made: Event) => void): void {
    this.#last = event;
    const only = this.#all.length === 1 && !this.#steps.isWaiting ? this.#all[0]! : undefined;
    if (only !== undefined && !(isWhole && only.transform.reply !== undefined)) this.#alone(only, event, give);
    else this.#steps.run(() => given(this.#from(0, [event], isWhole), give));
  }

  /** So many more characters of the last event's block would be held anyway, by the transform that gets them first. */
  get room(): number {
    const last = this.#last;
    if (last === undefined || this.#steps.isWaiting || !('text' in last)) return 0;
    // They name the tokens of their own delta.
    if (last.type === 'text-delta' && last.logprobs !== undefined) return 0;
    return this.#all[0]!.transform.room?.(last.block) ?? 0;
  }

  /** How texts of the request that the answer repeats are written for the client; undefined: as they come. */
  get repeats(): ((text: string) => string) | undefined {
    const changing = this.#all.filter(({ transform }) => transform.repeats !== undefined);
    if (changing.length === 0) return undefined;
    return (text) => changing.reduce((changed, { transform }) => transform.repeats!(changed), text);
  }

  /** The same with less, for the one transform of most answers. */
  #alone({ name, transform }: Named, event: Event, give: (made: Event) => void): void {
    let made: readonly Event[] | Promise<readonly Event[]>;
    try {
      made = transform.event(event);
      if (!(made instanceof Promise)) made = this.#placed(made);
    } catch (error) {
      throw this.#failed(name, error);
    }
    if (made instanceof Promise) {
      const waits = made.then((events) => this.#run('', () => this.#placed(events)), this.#rejected(name));
      this.#steps.run(() => given(waits, give));
    } else for (const one of made) give(one);
  }

  /** The same list if all numbers in it are right. */
  #placed(events: readonly Event[]): readonly Event[] {
    let placed = events;
    for (let index = 0; index < events.length; index++) {
      const one = this.#order.placed(events[index]!);
      if (one === events[index]) continue;
      if (placed === events) placed = [...events];
      (placed as Event[])[index] = one;
    }
    return placed;
  }

  /** Gives the events that transforms add after the last one, and calls `done` behind them. */
  end(isWhole: boolean, give: (made: Event) => void, done: () => void): void {
    this.#isEnding = true;
    for (const [index, { name, transform }] of this.#all.entries()) {
      if (transform.end === undefined || (isWhole && transform.reply !== undefined)) continue;
      const rest = () => this.#run(name, () => transform.end!());
      this.#steps.run(() => {
        const made = rest();
        if (!(made instanceof Promise)) return given(this.#from(index + 1, made, isWhole), give);
        return made.then((events) => given(this.#from(index + 1, events, isWhole), give), this.#rejected(name));
      });
    }
    this.#steps.run(done);
  }

  /** The end was asked for, and may wait. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** What the events wait for, until `settle` is called behind it; rejects with the error that ends the answer. */
  get pending(): Promise<void> | undefined {
    return this.#steps.pending;
  }

  settle(): void {
    this.#steps.settle();
  }

  /** Runs behind the events that wait. */
  after(work: () => void): void {
    this.#steps.run(work);
  }

  /** The answer ends otherwise: what waits is dropped. */
  abandon(): void {
    this.#steps.abandon();
  }

  /** Whether any transform has a `reply`. */
  get takeReplies(): boolean {
    return this.#all.some(({ transform }) => transform.reply !== undefined);
  }

  async reply(reply: Reply): Promise<Reply> {
    let changed = reply;
    for (const { name, transform } of this.#all) {
      if (transform.reply === undefined) continue;
      try {
        changed = await transform.reply(changed);
      } catch (error) {
        throw this.#failed(name, error);
      }
    }
    return changed;
  }

  #from(first: number, events: readonly Event[], isWhole: boolean): readonly Event[] | Promise<readonly Event[]> {
    let current = events;
    for (let index = first; index < this.#all.length; index++) {
      const { name, transform } = this.#all[index]!;
      if (isWhole && transform.reply !== undefined) continue;
      const given = current;
      const made = this.#run(name, () => (given.length === 1 ? transform.event(given[0]!) : each(transform, given)));
      if (made instanceof Promise) return made.then((all) => this.#from(index + 1, all, isWhole), this.#rejected(name));
      current = made;
    }
    return this.#run('', () => this.#placed(current));
  }

  #rejected(name: string): (error: unknown) => never {
    return (error) => {
      throw this.#failed(name, error);
    };
  }

  #run<T>(name: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#failed(name, error);
    }
  }

  #failed(name: string, error: unknown): GatewayError {
    this.#hasFailed = true;
    const report = this.#exchange.find(usageReport);
    if (report instanceof LiveReport) report.refusedHere = true;
    if (error instanceof GatewayError) return error;
    const by = name === '' ? this.#all.map((one) => one.name).join(', ') : name;
    this.#exchange.log.error({ error, transform: by }, 'a transform of an answer failed');
    return new GatewayError('internal', 'The answer could not be processed.', { shouldRetry: false, cause: error });
  }
}

function each(
  transform: AnswerTransform,
  events: readonly Event[],
  from = 0,
  out: readonly Event[] = [],
): readonly Event[] | Promise<readonly Event[]> {
  const all = [...out];
  for (let index = from; index < events.length; index++) {
    const made = transform.event(events[index]!);
    if (made instanceof Promise) return made.then((some) => each(transform, events, index + 1, [...all, ...some]));
    all.push(...made);
  }
  return all;
}

function given(
  made: readonly Event[] | Promise<readonly Event[]>,
  give: (made: Event) => void,
): undefined | Promise<void> {
  if (made instanceof Promise)
    return made.then((events) => {
      for (const event of events) give(event);
    });
  for (const event of made) give(event);
  return undefined;
}

/** By the type of an event: the kind of its block, and what it does to it. */
const parts = new Map<string, readonly [kind: string, step: string]>([
  ['citation', ['text', 'delta']],
  ...['text', 'refusal', 'reasoning', 'tool'].flatMap((kind) =>
    ['start', 'delta', 'end'].map((step) => [`${kind}-${step}`, [kind, step]] as const),
  ),
]);

/** Checks the order that `Event` describes, and renumbers blocks, as transforms may add and drop some. */
class EventOrder {
  readonly #numbers = new Map<number, number>();
  readonly #open = new Map<number, string>();
  readonly #stopped = new Set<number>();
  #next = 0;

  /** Returns the same object if its number is right. */
  placed(event: Event): Event {
    if (event.type === 'reply-start') return event;
    if (this.#stopped.has(event.choice)) throw new Error(`${event.type} comes after the stop of its choice`);
    if (event.type === 'stop') {
      this.#stopped.add(event.choice);
      return event;
    }
    const block = this.#numberOf(event);
    return block === event.block ? event : { ...event, block };
  }

  #numberOf(event: Exclude<Event, { type: 'reply-start' | 'stop' }>): number {
    const { type, block } = event;
    const [kind, step] = parts.get(type) ?? (type.split('-') as [string, string | undefined]);
    if (step === undefined || step === 'start') {
      if (this.#numbers.has(block)) throw new Error(`${type} repeats the number ${block} of another block`);
      if (step === 'start') this.#open.set(block, kind);
      this.#numbers.set(block, this.#next);
      return this.#next++;
    }
    if (this.#open.get(block) !== kind) throw new Error(`${type} belongs to no open block`);
    if (step === 'end') this.#open.delete(block);
    return this.#numbers.get(block)!;
  }
}
