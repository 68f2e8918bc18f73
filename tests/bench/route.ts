/** What choosing a target and keeping its health cost a request: `npm run bench:route`. Prints nanoseconds for one request. */
import type { ContextKey, Exchange, Outcome } from '../../core/contract/contract.ts';
import { type Call, type Conversation, call, conversation } from '../../plugins/common/domain/calls.ts';
import { type Model, model } from '../../plugins/common/domain/models.ts';
import providersPlugin from '../../plugins/providers/index.ts';
import routePlugin from '../../plugins/route/index.ts';
import { fakeHost, okAnswer, setUp } from '../helpers/fakes.ts';

const runs = 200_000;
const rounds = 9;
const outcome: Outcome = { kind: 'complete', status: 200, bytesOut: 0, totalMs: 1 };
const never = new AbortController().signal;

/** As lean as the core's own: what is measured is the route. */
class LeanExchange {
  readonly id = 'x';
  readonly signal = never;
  readonly request = { headers: {}, body: new Uint8Array(), bodyBytes: 10_000 };
  readonly #facts: unknown[] = [];
  readonly #deferred: ((outcome: Outcome) => unknown)[] = [];
  get<T>(fact: ContextKey<T>): T {
    return this.#facts[fact.slot] as T;
  }
  find<T>(fact: ContextKey<T>): T | undefined {
    return this.#facts[fact.slot] as T | undefined;
  }
  set<T>(fact: ContextKey<T>, value: T): void {
    this.#facts[fact.slot] = value;
  }
  defer(work: (outcome: Outcome) => unknown): void {
    this.#deferred.push(work);
  }
  beforeFirstByte(): void {}
  end(): void {
    for (let work = this.#deferred.pop(); work !== undefined; work = this.#deferred.pop()) work(outcome);
  }
}

const entry = (...names: string[]): Model => ({
  id: 'm',
  ownedBy: 'someone',
  created: 0,
  displayName: 'M',
  kind: 'chat',
  targets: names.map((provider) => ({ provider, model: 'their-m', weight: 0 })),
  contextTokens: undefined,
  maxOutputTokens: undefined,
  prices: undefined,
});

/** `conversation`: what the request says of its conversation. */
async function measure(section: unknown, vendors: Record<string, object>, reported?: Conversation): Promise<number> {
  const host = fakeHost();
  await setUp(providersPlugin, host, vendors);
  const part = await setUp(routePlugin, host, section);
  const wanted = entry(...Object.keys(vendors));
  const requestedCall = { protocol: 'chat', model: 'm', stream: true } as Call;
  const answer = Promise.resolve(okAnswer);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now();
    for (let run = 0; run < runs; run++) {
      const exchange = new LeanExchange();
      exchange.set(call, requestedCall);
      exchange.set(model, wanted);
      exchange.set(conversation, reported);
      await part.handle!(exchange as unknown as Exchange, () => answer);
      exchange.end();
    }
    if (round > 0) best = Math.min(best, performance.now() - startedMs);
  }
  return Math.round((best / runs) * 1e6);
}

const speaks = { chat: 'https://vendor.example/v1' };
const vendor = { keys: 'one', speaks };
const many = { keys: ['one', 'two', 'three', 'four'], speaks };
const named: Conversation = { name: 'a session of some client', opening: () => undefined };
const unnamed: Conversation = { name: undefined, opening: () => 'x'.repeat(2_000) };
const cases: Record<string, [unknown, Record<string, object>, Conversation?]> = {
  'one target with one key': [{}, { a: vendor }],
  'one target with four keys': [{}, { a: many }],
  'one target with four keys, a session that is named': [{}, { a: many }, named],
  'one target with four keys, a session by its opening of 2 KB': [{}, { a: many }, unnamed],
  'one target with one key and a bound': [{}, { a: { ...vendor, concurrency: 10 } }],
  'three targets in order': [{}, { a: vendor, b: vendor, c: vendor }],
  'three targets, the fastest': [{ strategy: 'fastest' }, { a: vendor, b: vendor, c: vendor }],
};
for (const [name, [section, vendors, reported]] of Object.entries(cases))
  process.stdout.write(`${name}: ${await measure(section, vendors, reported)} ns\n`);
