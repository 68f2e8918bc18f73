/** Where answers are kept: the interface of the three stores. Types. */
import type { Entry, Neighbour } from '../entry.ts';

/** An answer's place. */
export interface Place {
  readonly accountId: string;
  readonly key: string;
}

export interface Near {
  readonly key: string;
  readonly vector: Float32Array;
}

export interface Found {
  readonly entry: Entry | undefined;
  /** Another process makes it. */
  readonly isMade: boolean;
}

/** Methods reject where the store is away. It is bounded in bytes, and so is each account's part of it. */
export interface EntryStore {
  find(place: Place): Found | Promise<Found>;
  /** Marks it as made by `owner` until `holdMs` have passed. false: another one makes it. Of stores of one process: always true. */
  claim(place: Place, owner: string, holdMs: number): boolean | Promise<boolean>;
  /** Keeps the mark for `holdMs` more. */
  renew(place: Place, owner: string, holdMs: number): void | Promise<void>;
  release(place: Place, owner: string): void | Promise<void>;
  put(accountId: string, entry: Entry, keepMs: number, neighbour?: Neighbour): void | Promise<void>;
  /** The newest answers of a group. */
  near(accountId: string, group: string, newest: number): readonly Near[] | Promise<readonly Near[]>;
  /** Bytes that are kept now, of an account or of all. */
  bytes(accountId?: string): number | Promise<number>;
}

export interface Bounds {
  readonly bytes: number;
  readonly accountBytes: number;
}
