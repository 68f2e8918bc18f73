/** The table of keyed calls in memory: the meaning of the idempotency plugin's statements, on the database's own clock. */
import type { KeyedCall } from '../../plugins/idempotency/key.ts';
import type { EndedCall, KeyedRows, KnownCall, Lifetimes } from '../../plugins/idempotency/rows.ts';
import type { StoredAnswer } from '../../plugins/idempotency/stored-answer.ts';
import type { DatabaseLink } from './database.ts';

interface StoredCall {
  fingerprint: string;
  requestId: string;
  owner: string;
  state: KnownCall['state'];
  leaseUntil: number;
  createdAt: number;
  expiresAt: number;
  answer: StoredAnswer | undefined;
}

export class KeyTable {
  readonly calls = new Map<string, StoredCall>();
  /** Milliseconds by which the database's clock is ahead of the world's: leases run out whose processes live. */
  leaptMs = 0;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): number {
    return this.#now() + this.leaptMs;
  }

  /** The leases of a process that has died run out at once, and no other account's. */
  runOut(owner: string): void {
    for (const known of this.calls.values()) {
      if (known.owner === owner && known.state === 'running') known.leaseUntil = Math.min(known.leaseUntil, this.now());
    }
  }
}

/** One process's way to the table. */
export class MemoryKeys implements KeyedRows {
  readonly #table: KeyTable;
  readonly #link: Pick<DatabaseLink, 'send'>;
  readonly #owner: string;
  readonly #lifetimes: Lifetimes;

  constructor(table: KeyTable, link: Pick<DatabaseLink, 'send'>, owner: string, lifetimes: Lifetimes) {
    this.#table = table;
    this.#link = link;
    this.#owner = owner;
    this.#lifetimes = lifetimes;
  }

  claim(call: KeyedCall): Promise<boolean> {
    return this.#run('claim a key', (now) => {
      const known = this.#table.calls.get(idOf(call));
      const isGone =
        known !== undefined && known.expiresAt <= now && (known.state !== 'running' || known.leaseUntil <= now);
      if (known !== undefined && !isGone) return false;
      this.#table.calls.set(idOf(call), {
        fingerprint: call.fingerprint,
        requestId: call.requestId,
        owner: this.#owner,
        state: 'running',
        leaseUntil: now + this.#lifetimes.leaseMs,
        createdAt: now,
        expiresAt: now + this.#lifetimes.keepMs,
        answer: undefined,
      });
      return true;
    });
  }

  find(call: KeyedCall): Promise<KnownCall | undefined> {
    return this.#run('find a key', (now) => {
      const known = this.#table.calls.get(idOf(call));
      if (known === undefined) return undefined;
      const { fingerprint, requestId, state, leaseUntil, createdAt, answer: reported } = known;
      const forsaken = state === 'running' && leaseUntil <= now;
      const returned = leaseUntil === Number.NEGATIVE_INFINITY;
      return { fingerprint, requestId, state, abandoned: forsaken, returned, ageMs: now - createdAt, answer: reported };
    });
  }

  takeOver(call: KeyedCall, forsaken: KnownCall): Promise<boolean> {
    return this.#run('take a key over', (now) => {
      const known = this.#table.calls.get(idOf(call));
      const isSame = known?.requestId === forsaken.requestId && known.state === 'running' && known.leaseUntil <= now;
      if (known === undefined || !isSame) return false;
      known.requestId = call.requestId;
      known.owner = this.#owner;
      known.leaseUntil = now + this.#lifetimes.leaseMs;
      known.createdAt = now;
      known.expiresAt = now + this.#lifetimes.keepMs;
      return true;
    });
  }

  finish({ call, answer: reported }: EndedCall): Promise<void> {
    return this.#run('keep an answer', (now) => {
      const own = this.#own(call);
      if (own === undefined) return;
      own.state = reported === undefined ? 'lost' : 'answered';
      own.expiresAt = now + this.#lifetimes.keepMs;
      own.answer = reported;
    });
  }

  free(call: KeyedCall): Promise<void> {
    return this.#run('free a key', () => {
      if (this.#own(call) !== undefined) this.#table.calls.delete(idOf(call));
    });
  }

  renew(calls: readonly KeyedCall[]): Promise<void> {
    return this.#run('renew keys', (now) => {
      for (const call of calls) {
        const own = this.#own(call);
        if (own !== undefined) own.leaseUntil = now + this.#lifetimes.leaseMs;
      }
    });
  }

  findRunning(): Promise<readonly string[]> {
    return this.#run('keys left running', () =>
      this.#ownRunning()
        .filter(({ leaseUntil }) => leaseUntil > Number.NEGATIVE_INFINITY)
        .map(({ requestId }) => requestId),
    );
  }

  async abandon(requestIds: readonly string[]): Promise<void> {
    if (requestIds.length === 0) return;
    await this.#run('forsake keys', () => {
      for (const known of this.#ownRunning()) {
        if (requestIds.includes(known.requestId)) known.leaseUntil = Number.NEGATIVE_INFINITY;
      }
    });
  }

  deleteExpired(): Promise<void> {
    return this.#run('forget keys', (now) => {
      for (const [id, { expiresAt, state, leaseUntil }] of this.#table.calls) {
        if (expiresAt <= now && (state !== 'running' || leaseUntil <= now)) this.#table.calls.delete(id);
      }
    });
  }

  #ownRunning(): StoredCall[] {
    return [...this.#table.calls.values()].filter(({ owner, state }) => owner === this.#owner && state === 'running');
  }

  #own(call: KeyedCall): StoredCall | undefined {
    const known = this.#table.calls.get(idOf(call));
    return known?.requestId === call.requestId && known.state === 'running' ? known : undefined;
  }

  #run<T>(name: string, work: (now: number) => T): Promise<T> {
    return this.#link.send(name, async () => work(this.#table.now()));
  }
}

function idOf({ accountId, keyHash }: KeyedCall): string {
  return `${accountId} ${keyHash}`;
}
