/** Clients that order videos from a gateway which dies and comes back, cancel some, and remember every task they were given. */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

const finalStates = new Set(['succeeded', 'failed', 'cancelled', 'expired']);
const path = '/v1/contents/generations/tasks';

export class FilmClients {
  /** Tasks whose ids clients hold: each must end once, and be paid once or not at all. */
  readonly taken = new Set<string>();
  /** Tasks that a client asked to delete: one that had ended is gone afterwards, also where a kill took the answer. */
  readonly deletable = new Set<string>();
  /** Cancellations and deletions that were acknowledged. */
  cancelled = 0;
  readonly #origin: string;
  readonly #keys: readonly string[];
  #running = true;
  readonly #workers: Promise<void>[];

  constructor(origin: string, keys: readonly string[], workers: number) {
    this.#origin = origin;
    this.#keys = keys;
    this.#workers = Array.from({ length: workers }, (_, index) => this.#work(keys[index % keys.length]!, index));
  }

  /** Orders nothing more. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  /** Waits until every task that clients hold has ended; resolves with those that have not within the time. */
  async unfinished(withinMs: number): Promise<string[]> {
    const left = new Set(this.taken);
    for (const deadline = performance.now() + withinMs; left.size > 0 && performance.now() < deadline; ) {
      for (const id of left) {
        const state = await this.#stateOf(id);
        if (finalStates.has(state) || (state === 'gone' && this.deletable.has(id))) left.delete(id);
      }
      await pause(100);
    }
    return [...left];
  }

  async #work(key: string, index: number): Promise<void> {
    for (let turn = 0; this.#running; turn++) {
      await this.#order(key, `film ${index} turn ${turn} [[sandbox: takes=${randomInt(50, 800)}ms]]`).catch(() => {});
      await pause(randomInt(20, 200));
    }
  }

  async #order(key: string, text: string): Promise<void> {
    const body = JSON.stringify({ model: 'film', content: [{ type: 'text', text }], duration: randomInt(1, 5) });
    const answer = await this.#send(key, path, { method: 'POST', body });
    const { id } = (await answer.json()) as { id?: string };
    if (answer.status !== 200 || id === undefined) throw new Error(`status ${answer.status}`);
    this.taken.add(id);
    if (randomInt(4) > 0) return;
    await pause(randomInt(0, 500));
    this.deletable.add(id);
    const ended = await this.#send(key, `${path}/${id}`, { method: 'DELETE' });
    await ended.text();
    if (ended.ok) this.cancelled++;
  }

  async #stateOf(id: string): Promise<string> {
    let missing = 0;
    for (const key of this.#keys) {
      const answer = await this.#send(key, `${path}/${id}`, { method: 'GET' }).catch(() => undefined);
      if (answer?.status === 200) return ((await answer.json()) as { status: string }).status;
      await answer?.text();
      if (answer?.status === 404) missing++;
    }
    return missing === this.#keys.length ? 'gone' : 'unknown';
  }

  #send(key: string, to: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    return fetch(this.#origin + to, { ...init, headers });
  }
}
