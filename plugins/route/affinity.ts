/** Sessions: which requests belong together, and by which target and key they were served last. */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock, Exchange } from '../../core/contract.ts';
import { seedOf } from '../../core/rendezvous.ts';
import { caller, conversation } from '../../core/vocabulary.ts';
import type { AffinityConfig } from './config.ts';

/** Sessions that a process remembers; those silent for longest are forgotten, and found again by their names alone. */
const maxSessions = 20_000;
/** Requests that are shorter are cached by no vendor, so nothing is lost by sending them anywhere. */
const shortestOpeningBytes = 4_096;

/** Characters of a session's name that are kept as they are. */
const longestId = 200;

export interface Session {
  /** Of this account alone. */
  readonly id: string;
  readonly hash: number;
}

/** Where a session was served. */
export interface Place {
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
}

/** The session that a request belongs to: what its body names, a header, or how it begins. undefined: none. */
export function sessionOf(exchange: Exchange, { sessions, headers, openings }: AffinityConfig): Session | undefined {
  const told = exchange.find(conversation);
  if (sessions) {
    const name = told?.name ?? named(exchange, headers);
    if (name !== undefined) return session(exchange, `name ${name}`);
  }
  if (!openings || exchange.request.bodyBytes < shortestOpeningBytes) return undefined;
  const opening = told?.opening();
  return opening === undefined ? undefined : session(exchange, `opening ${opening}`);
}

function named({ request }: Exchange, headers: readonly string[]): string | undefined {
  for (const header of headers) {
    const value = request.headers[header];
    if (value !== undefined && value !== '') return value;
  }
  return undefined;
}

/** Of one account alone, whatever texts its clients choose. Long ones are kept as digests. */
function session(exchange: Exchange, text: string): Session {
  const whole = `${exchange.find(caller)?.accountId ?? ''} ${text}`;
  const id = whole.length <= longestId ? whole : hash('sha256', whole, 'base64url');
  return { id, hash: seedOf(id) };
}

export class Sessions {
  readonly #places: LRUCache<string, Place>;

  constructor(clock: Clock) {
    this.#places = new LRUCache({
      max: maxSessions,
      ttlResolution: 0,
      // A time of 0 would mean to the cache that nothing was set.
      perf: { now: () => clock.monotonic() + 1 },
    });
  }

  placeOf({ id }: Session): Place | undefined {
    return this.#places.get(id);
  }

  remember({ id }: Session, place: Place, forMs: number): void {
    this.#places.set(id, place, { ttl: forMs });
  }
}
