/** Answers at the server of counters, for several processes. */
import type { Counters } from '../../common/domain/counters.ts';
import { bytesOf, decodeEntry, type Entry, encodeHead, type Neighbour, vectorIn, vectorText } from '../entry.ts';
import { bytesScript, claimScript, findScript, holdScript, nearScript, putScript } from './scripts.ts';
import type { Bounds, EntryStore, Found, Near, Place } from './store.ts';

export class RedisStore implements EntryStore {
  readonly #counters: Counters;
  readonly #keys: readonly [string];
  readonly #bounds: Bounds;

  /** `gateway` separates gateways. What is in braces is where a cluster places all of it. */
  constructor(counters: Counters, gateway: string, bounds: Bounds) {
    this.#counters = counters;
    this.#keys = [`gateway:{${gateway}:cache}`];
    this.#bounds = bounds;
  }

  async find({ accountId, key }: Place): Promise<Found> {
    const [text, made] = (await this.#counters.run(findScript, this.#keys, [accountId, key])) as [string, number];
    return { entry: text === '' ? undefined : decoded(key, text), isMade: made === 1 };
  }

  async claim({ accountId, key }: Place, owner: string, holdMs: number): Promise<boolean> {
    return (await this.#counters.run(claimScript, this.#keys, [accountId, key, owner, holdMs])) === 1;
  }

  async renew({ accountId, key }: Place, owner: string, holdMs: number): Promise<void> {
    await this.#counters.run(holdScript, this.#keys, [accountId, key, owner, holdMs]);
  }

  async release({ accountId, key }: Place, owner: string): Promise<void> {
    await this.#counters.run(holdScript, this.#keys, [accountId, key, owner, 0]);
  }

  async put(accountId: string, entry: Entry, keepMs: number, neighbour?: Neighbour): Promise<void> {
    const { bytes, accountBytes } = this.#bounds;
    const text = `${encodeHead(entry)}\n${Buffer.from(entry.body).toString('base64')}`;
    // The text is what the server keeps, and is longer than the body.
    const taken = bytesOf(entry, neighbour) - entry.body.length + text.length;
    const group = neighbour === undefined ? ['', ''] : [neighbour.group, vectorText(neighbour.vector)];
    const values = [accountId, entry.key, text, taken, Math.round(keepMs), bytes, accountBytes, ...group];
    await this.#counters.run(putScript, this.#keys, values);
  }

  async near(accountId: string, group: string, newest: number): Promise<readonly Near[]> {
    const found = (await this.#counters.run(nearScript, this.#keys, [accountId, group, newest])) as string[];
    const near: Near[] = [];
    for (let at = 0; at < found.length; at += 2)
      near.push({ key: found[at]!.slice(accountId.length + 1), vector: vectorIn(found[at + 1]!) });
    return near;
  }

  async bytes(accountId = '*'): Promise<number> {
    return Number(await this.#counters.run(bytesScript, this.#keys, [accountId]));
  }
}

/** The head is JSON in one line. */
function decoded(key: string, text: string): Entry | undefined {
  const at = text.indexOf('\n');
  return at === -1 ? undefined : decodeEntry(key, text.slice(0, at), Buffer.from(text.slice(at + 1), 'base64'));
}
