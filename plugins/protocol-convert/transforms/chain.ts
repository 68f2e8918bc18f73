/** Runs the transforms of one answer in turn and checks the events that they return. */
import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Event, Reply } from '../../common/canonical/reply.ts';
import type { AnswerTransform, CallTransform } from '../../common/wire/call-transforms.ts';

interface Named {
  readonly name: string;
  readonly transform: AnswerTransform;
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
  return active.length === 0 ? undefined : new AnswerTransforms(active, exchange.log);
}

export class AnswerTransforms {
  readonly #all: readonly Named[];
  readonly #log: Exchange['log'];
  readonly #order = new EventOrder();
  #hasFailed = false;

  constructor(all: readonly Named[], log: Exchange['log']) {
    this.#all = all;
    this.#log = log;
  }

  /** A transform has ended the answer. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** The events that replace this one. `isWhole`: transforms with a `reply` get the whole answer instead. */
  event(event: Event, isWhole: boolean): readonly Event[] {
    return this.#from(0, [event], isWhole);
  }

  end(isWhole: boolean): readonly Event[] {
    const out: Event[] = [];
    for (const [index, { name, transform }] of this.#all.entries()) {
      if (transform.end === undefined || (isWhole && transform.reply !== undefined)) continue;
      const rest = this.#run(name, () => transform.end!());
      out.push(...this.#from(index + 1, rest, isWhole));
    }
    return out;
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

  #from(first: number, events: readonly Event[], isWhole: boolean): readonly Event[] {
    let current = events;
    for (let index = first; index < this.#all.length; index++) {
      const { name, transform } = this.#all[index]!;
      if (isWhole && transform.reply !== undefined) continue;
      current =
        current.length === 1
          ? this.#run(name, () => transform.event(current[0]!))
          : this.#run(name, () => current.flatMap((event) => transform.event(event)));
    }
    return this.#run('', () => current.map((event) => this.#order.placed(event)));
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
    if (error instanceof GatewayError) return error;
    const by = name === '' ? this.#all.map((one) => one.name).join(', ') : name;
    this.#log.error({ error, transform: by }, 'a transform of an answer failed');
    return new GatewayError('internal', 'The answer could not be processed.', { shouldRetry: false, cause: error });
  }
}

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
    const [kind, step] = type === 'citation' ? ['text', 'delta'] : (type.split('-') as [string, string | undefined]);
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
