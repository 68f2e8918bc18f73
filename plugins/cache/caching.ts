/** A call that may be answered again: found, waited for, or made and kept. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Exchange, Host, Next, Outcome } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { call, spendGuard } from '../common/domain/calls.ts';
import { serveWithoutAttempt } from '../common/domain/ledger.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import { BodyCopy } from '../common/wire/answer-body.ts';
import { type PromptRules, promptRules } from '../common/wire/prompt-rules.ts';
import type { CacheConfig } from './config.ts';
import type { Entry, Neighbour } from './entry.ts';
import { Flights, type Landing, Room, waited } from './flights.ts';
import { hasForms, inFormOf } from './form.ts';
import { entryOf, keptHeaders, type Sent } from './kept.ts';
import type { CachedRequest } from './request.ts';
import { nearest, questionIn, vectorOf } from './similar.ts';
import type { Bounds, EntryStore, Place } from './stores/store.ts';
import type { Sums } from './sums.ts';
import type { Wish } from './wish.ts';

/** Another process that has said nothing for so long makes no answer any more. */
const holdMs = 15_000;
const renewMs = 5_000;
/** Between two looks at what another process makes. */
const lookMs = 50;

const hitEvent = defineEvent('cache.hit', (how: string, ageS: number) => {
  const of = how === 'similar' ? 'nearly the same question' : 'an equal request';
  return `answered from the cache: the answer to ${of}, ${ageS} s old`;
});

interface CachingParts {
  readonly host: Host;
  readonly store: EntryStore;
  readonly sums: Sums;
  readonly bounds: Bounds;
}

type Settings = Pick<CacheConfig, 'wait' | 'largest' | 'similar'>;

interface Made extends Landed {
  /** What the question of this request is found by later. */
  readonly neighbour: Neighbour | undefined;
}

interface Landed {
  readonly request: CachedRequest;
  /** Ends what others wait for. */
  readonly land: (landing: Landing) => void;
  /** By whom it is marked in the store as made; absent: it is not. */
  readonly owner?: string | undefined;
}

interface Looked {
  readonly landing: Exclude<Landing, string> | undefined;
  /** The answer is marked as made here. */
  readonly isClaimed: boolean;
}

export class Caching {
  readonly #parts: CachingParts;
  readonly #flights = new Flights();
  readonly #room: Room;
  /** Marks of this process in the store, by owner. */
  readonly #claims = new Map<string, Place>();
  /** Answers that are on their way to the store. */
  readonly #keeping = new Set<Promise<void>>();

  constructor(parts: CachingParts) {
    this.#parts = parts;
    this.#room = new Room(parts.bounds);
    parts.host.every(renewMs, 'keep marks of answers that are made', () => this.#renew());
  }

  async answer(
    exchange: Exchange,
    next: Next,
    request: CachedRequest,
    wish: Wish,
    settings: Settings,
  ): Promise<Answer> {
    if (!wish.reads) return this.#make(exchange, next, wish, settings, alone(request));
    const { place } = request;
    const id = `${place.accountId} ${place.key}`;
    for (let flight = this.#flights.of(id); flight !== undefined; flight = this.#flights.of(id)) {
      const landing = await waited(flight, settings.wait, exchange.signal);
      if (landing === 'again') continue;
      const isUsable = landing !== 'alone' && this.#isYoung(landing.entry, wish);
      const hit = isUsable ? await this.#hit(exchange, request, landing) : undefined;
      return hit ?? this.#make(exchange, next, { ...wish, writes: false }, settings, alone(request));
    }
    const land = this.#flights.begin(id);
    try {
      return await this.#lead(exchange, next, request, wish, { ...settings, land });
    } catch (error) {
      land(exchange.signal.aborted ? 'again' : 'alone');
      throw error;
    }
  }

  async #lead(
    exchange: Exchange,
    next: Next,
    request: CachedRequest,
    wish: Wish,
    { land, ...settings }: Settings & Pick<Landed, 'land'>,
  ): Promise<Answer> {
    const looked = await this.#look(exchange, request, wish, settings.wait);
    if (looked.landing !== undefined) {
      land(looked.landing);
      const hit = await this.#hit(exchange, request, looked.landing);
      return hit ?? this.#make(exchange, next, { ...wish, writes: false }, settings, alone(request));
    }
    const made: Made = { request, land, owner: looked.isClaimed ? exchange.id : undefined, neighbour: undefined };
    try {
      const { near, neighbour } = await this.#compare(exchange, request, wish, settings);
      const hit = near && (await this.#hit(exchange, request, near));
      if (near === undefined || hit === undefined)
        return await this.#make(exchange, next, wish, settings, { ...made, neighbour });
      this.#end(made, near);
      return hit;
    } catch (error) {
      this.#end(made, exchange.signal.aborted ? 'again' : 'alone');
      throw error;
    }
  }

  /** Looks until it is there, or this process is the one that makes it. A store that is away is as one that has nothing. */
  async #look(exchange: Exchange, { place }: CachedRequest, wish: Wish, longestMs: number): Promise<Looked> {
    const { clock } = this.#parts.host;
    const until = clock.monotonic() + longestMs;
    try {
      for (;;) {
        const looked = await this.#lookOnce(exchange, place, wish);
        if (looked.landing !== undefined || looked.isClaimed || clock.monotonic() >= until) return looked;
        await pause(lookMs, undefined, { signal: exchange.signal });
      }
    } catch (error) {
      this.#release(place, exchange.id);
      exchange.signal.throwIfAborted();
      exchange.log.warn({ error }, 'the cache cannot be read');
      return { landing: undefined, isClaimed: false };
    }
  }

  async #lookOnce(exchange: Exchange, place: Place, wish: Wish): Promise<Looked> {
    const { store } = this.#parts;
    const { landing, isMade } = await this.#find(place, wish);
    if (landing !== undefined || isMade || !(await store.claim(place, exchange.id, holdMs)))
      return { landing, isClaimed: false };
    this.#claims.set(exchange.id, place);
    // What another process has kept between the look and the mark.
    const meanwhile = await this.#find(place, wish);
    if (meanwhile.landing === undefined) return { landing: undefined, isClaimed: true };
    this.#release(place, exchange.id);
    return { landing: meanwhile.landing, isClaimed: false };
  }

  async #find(place: Place, wish: Wish): Promise<Pick<Looked, 'landing'> & { readonly isMade: boolean }> {
    const { entry, isMade } = await this.#parts.store.find(place);
    const isUsable = entry !== undefined && this.#isYoung(entry, wish);
    return { landing: isUsable ? { entry, how: 'hit' } : undefined, isMade };
  }

  /** The answer to nearly the same question, if there is one, and what this question is found by. */
  async #compare(
    exchange: Exchange,
    request: CachedRequest,
    wish: Wish,
    { similar }: Settings,
  ): Promise<{ near?: Exclude<Landing, string>; neighbour?: Neighbour }> {
    const { store, host } = this.#parts;
    const rules: PromptRules | undefined = host.find(promptRules);
    if (similar === undefined || rules === undefined || !hasForms(request.opened)) return {};
    const question = questionIn(request.json, rules.textsOf(exchange));
    const group = question && request.groupWithout(question.hole);
    if (question === undefined || group === undefined) return {};
    try {
      const vector = await vectorOf(host, exchange, similar.model, question.text);
      const { accountId } = request.place;
      const key = nearest(await store.near(accountId, group, similar.newest), vector, similar.at);
      const found = key === undefined ? undefined : (await store.find({ accountId, key })).entry;
      const isUsable = found !== undefined && this.#isYoung(found, wish);
      return { neighbour: { group, vector }, ...(isUsable ? { near: { entry: found, how: 'similar' as const } } : {}) };
    } catch (error) {
      exchange.signal.throwIfAborted();
      exchange.log.warn({ error }, 'a question could not be compared');
      return {};
    }
  }

  /** undefined: the answer cannot be sent in the form that this request asks for. */
  async #hit(
    exchange: Exchange,
    request: CachedRequest,
    { entry, how }: Exclude<Landing, string>,
  ): Promise<Answer | undefined> {
    const { host, sums } = this.#parts;
    const sent = this.#sentAs(exchange, request, entry);
    if (sent === undefined) return undefined;
    const { share } = request.rule;
    const guard = exchange.find(spendGuard);
    await guard?.cover?.(entry.usage, share);
    const now = host.clock.now();
    const ageS = Math.max(0, Math.floor((now - entry.storedAt) / 1000));
    const price = share.numerator === 0n ? 'free' : { ratio: share };
    serveWithoutAttempt(exchange, { name: 'cache', usage: entry.usage, price });
    recordEvent(exchange, now, hitEvent, [how, ageS]);
    const saved = guard?.saving?.(entry.usage, share);
    sums.count(how === 'hit' ? 'hits' : 'similar', this.#countedAs(exchange, request), saved);
    return { status: 200, headers: { ...sent.headers, age: `${ageS}`, 'x-cache': how }, body: sent.body };
  }

  #sentAs(
    exchange: Exchange,
    { form, opened }: CachedRequest,
    entry: Entry,
  ): Pick<Entry, 'headers' | 'body'> | undefined {
    if (entry.form === form) return entry;
    if (!hasForms(opened)) return undefined;
    const made = inFormOf(exchange, opened, entry, () => this.#parts.host.clock.now());
    return made && { headers: { ...entry.headers, 'content-type': made.contentType }, body: made.body };
  }

  /** The call goes on, and its answer is kept at its end if it is one to keep. */
  async #make(exchange: Exchange, next: Next, wish: Wish, { largest }: Settings, made: Made): Promise<Answer> {
    this.#parts.sums.count('misses', this.#countedAs(exchange, made.request));
    let answer: Answer;
    try {
      answer = await next();
    } catch (error) {
      this.#end(made, exchange.signal.aborted ? 'again' : 'alone');
      throw error;
    }
    const headers = keptHeaders(answer.headers);
    answer.headers['x-cache'] = 'miss';
    // What is encoded still can be read by no one who has not asked for it so.
    if (answer.status !== 200 || !wish.writes || answer.headers['content-encoding'] !== undefined) {
      this.#end(made, 'alone');
      return answer;
    }
    const { accountId } = made.request.place;
    let bytes = 0;
    const copy = new BodyCopy(largest, (more) => {
      if (!this.#room.take(accountId, more)) return false;
      bytes += more;
      return true;
    });
    answer.body = copy.of(answer.body);
    // The call's slots and charge do not wait for the store.
    exchange.defer((outcome) =>
      this.#follow(
        this.#keep(exchange, made, outcome, { headers, copy }).finally(() => this.#room.give(accountId, bytes)),
      ),
    );
    return answer;
  }

  /** Resolves when all that is to be kept is kept. */
  async ended(): Promise<void> {
    await Promise.all(this.#keeping);
  }

  #follow(kept: Promise<void>): void {
    this.#keeping.add(kept);
    void kept.finally(() => this.#keeping.delete(kept));
  }

  async #keep(exchange: Exchange, made: Made, outcome: Outcome, sent: Sent): Promise<void> {
    const { request, neighbour } = made;
    const entry = entryOf(exchange, request, outcome, sent, this.#parts.host.clock.now());
    if (entry === undefined) return this.#end(made, outcome.kind === 'client_left' ? 'again' : 'alone');
    try {
      // Before others are let in: none of them is to find nothing.
      await this.#parts.store.put(request.place.accountId, entry, request.rule.keepMs, neighbour);
    } catch (error) {
      exchange.log.warn({ error }, 'an answer could not be kept');
    } finally {
      this.#end(made, { entry, how: 'hit' });
    }
  }

  #end({ land, request, owner }: Landed, landing: Landing): void {
    land(landing);
    if (owner !== undefined) this.#release(request.place, owner);
  }

  #release(place: Place, owner: string): void {
    if (!this.#claims.delete(owner)) return;
    // Without it the mark ends by itself.
    Promise.resolve(this.#parts.store.release(place, owner)).catch(() => undefined);
  }

  #renew(): Promise<unknown> | undefined {
    if (this.#claims.size === 0) return undefined;
    return Promise.all([...this.#claims].map(([owner, place]) => this.#parts.store.renew(place, owner, holdMs)));
  }

  #isYoung({ storedAt }: Entry, { maxAgeMs }: Wish): boolean {
    return this.#parts.host.clock.now() - storedAt <= maxAgeMs;
  }

  #countedAs(exchange: Exchange, { place, model: entry }: CachedRequest) {
    const { operation } = exchange.endpoint;
    return { accountId: place.accountId, model: entry?.id ?? exchange.get(call).model, operation };
  }
}

/** No other request waits for it. */
function alone(request: CachedRequest): Made {
  return { request, land: () => undefined, neighbour: undefined };
}
