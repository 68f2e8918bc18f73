/** Answers in this process's memory. */
import type { Clock } from '../../../core/contract/host-tools.ts';
import { bytesOf, type Entry, type Neighbour } from '../entry.ts';
import type { Bounds, EntryStore, Found, Near, Place } from './store.ts';

interface Kept {
  readonly accountId: string;
  readonly entry: Entry;
  readonly neighbour: Neighbour | undefined;
  readonly bytes: number;
  readonly endsAt: number;
}

interface Account {
  bytes: number;
  /** Those used longest ago first. */
  readonly ids: Set<string>;
  /** The newest last. */
  readonly groups: Map<string, Set<string>>;
}

const nothing: Found = { entry: undefined, isMade: false };

export class MemoryStore implements EntryStore {
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  /** Those used longest ago first. */
  readonly #kept = new Map<string, Kept>();
  readonly #accounts = new Map<string, Account>();
  #bytes = 0;

  constructor(clock: Clock, bounds: Bounds) {
    this.#clock = clock;
    this.#bounds = bounds;
  }

  find({ accountId, key }: Place): Found {
    const id = idOf(accountId, key);
    const kept = this.#kept.get(id);
    if (kept === undefined) return nothing;
    if (kept.endsAt <= this.#clock.monotonic()) {
      this.#drop(id, kept);
      return nothing;
    }
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    const { ids } = this.#accounts.get(accountId)!;
    ids.delete(id);
    ids.add(id);
    return { entry: kept.entry, isMade: false };
  }

  claim(): boolean {
    return true;
  }

  renew(): void {}

  release(): void {}

  put(accountId: string, entry: Entry, keepMs: number, neighbour?: Neighbour): void {
    const id = idOf(accountId, entry.key);
    const earlier = this.#kept.get(id);
    if (earlier !== undefined) this.#drop(id, earlier);
    const bytes = bytesOf(entry, neighbour);
    const { bytes: most, accountBytes } = this.#bounds;
    if (bytes > most || bytes > accountBytes) return;
    const account = this.#accountOf(accountId);
    // A part of a larger piece of memory would keep all of that.
    const own = { ...entry, body: new Uint8Array(entry.body) };
    this.#kept.set(id, { accountId, entry: own, neighbour, bytes, endsAt: this.#clock.monotonic() + keepMs });
    account.ids.add(id);
    account.bytes += bytes;
    this.#bytes += bytes;
    if (neighbour !== undefined) groupOf(account, neighbour.group).add(id);
    while (account.bytes > accountBytes) this.#dropFirst(account.ids);
    while (this.#bytes > most) this.#dropFirst(this.#kept.keys());
  }

  near(accountId: string, group: string, newest: number): readonly Near[] {
    const now = this.#clock.monotonic();
    const ids = [...(this.#accounts.get(accountId)?.groups.get(group) ?? [])];
    return ids.slice(-newest).flatMap((id) => {
      const { entry, neighbour, endsAt } = this.#kept.get(id)!;
      return neighbour === undefined || endsAt <= now ? [] : { key: entry.key, vector: neighbour.vector };
    });
  }

  bytes(accountId?: string): number {
    return accountId === undefined ? this.#bytes : (this.#accounts.get(accountId)?.bytes ?? 0);
  }

  /** Takes out what has ended; the rest of the bounds holds without it. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [id, kept] of this.#kept) if (kept.endsAt <= now) this.#drop(id, kept);
  }

  #dropFirst(ids: Iterable<string>): void {
    const [id] = ids;
    if (id !== undefined) this.#drop(id, this.#kept.get(id)!);
  }

  #drop(id: string, { accountId, bytes, neighbour }: Kept): void {
    this.#kept.delete(id);
    this.#bytes -= bytes;
    const account = this.#accounts.get(accountId)!;
    account.ids.delete(id);
    account.bytes -= bytes;
    if (neighbour !== undefined) {
      const group = account.groups.get(neighbour.group);
      group?.delete(id);
      if (group?.size === 0) account.groups.delete(neighbour.group);
    }
    if (account.ids.size === 0) this.#accounts.delete(accountId);
  }

  #accountOf(accountId: string): Account {
    let account = this.#accounts.get(accountId);
    if (account === undefined) {
      account = { bytes: 0, ids: new Set(), groups: new Map() };
      this.#accounts.set(accountId, account);
    }
    return account;
  }
}

function groupOf({ groups }: Account, name: string): Set<string> {
  let group = groups.get(name);
  if (group === undefined) {
    group = new Set();
    groups.set(name, group);
  }
  return group;
}

/** Keys are hexadecimal. */
function idOf(accountId: string, key: string): string {
  return `${accountId} ${key}`;
}
