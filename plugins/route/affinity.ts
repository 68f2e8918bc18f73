/** Session affinity: groups requests into sessions and remembers the target and key that served each last. */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Exchange } from '../../core/contract/contract.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { caller } from '../common/domain/accounts.ts';
import { type Attempt, conversation } from '../common/domain/calls.ts';
import { seedOf } from '../common/kit/rendezvous.ts';
import type { AffinityConfig } from './config.ts';

/** Sessions remembered per process. The least recently used is evicted; rendezvous hashing then finds its target again. */
const maxSessions = 20_000;
/** Vendors do not cache shorter prompts, so these requests gain nothing from affinity. */
const shortestOpeningBytes = 4_096;

/** Longer session ids are stored as digests. */
const longestId = 200;

export interface Session {
  /** Unique within the account. */
  readonly id: string;
  readonly hash: number;
}

/** The target and key that served a session. */
export interface SessionTarget {
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
}

/** The session of a request: named in its body or a header, or derived from its opening text. undefined: none. */
export function sessionOf(exchange: Exchange, { sessions, headers, openings }: AffinityConfig): Session | undefined {
  const conversationInfo = exchange.find(conversation);
  if (sessions) {
    const name = conversationInfo?.name ?? named(exchange, headers);
    if (name !== undefined) return session(exchange, `name ${name}`);
  }
  if (!openings || exchange.request.bodyBytes < shortestOpeningBytes) return undefined;
  const opening = conversationInfo?.opening();
  return opening === undefined ? undefined : session(exchange, `opening ${opening}`);
}

function named({ request }: Exchange, headers: readonly string[]): string | undefined {
  for (const header of headers) {
    const value = request.headers[header];
    if (value !== undefined && value !== '') return value;
  }
  return undefined;
}

/** The account id is part of the session id, so accounts that choose the same name never share a session. */
function session(exchange: Exchange, text: string): Session {
  const whole = `${exchange.find(caller)?.accountId ?? ''} ${text}`;
  const id = whole.length <= longestId ? whole : hash('sha256', whole, 'base64url');
  return { id, hash: seedOf(id) };
}

export class Sessions {
  readonly #targets: LRUCache<string, SessionTarget>;

  constructor(clock: Clock) {
    this.#targets = new LRUCache({
      max: maxSessions,
      ttlResolution: 0,
      // lru-cache reads a start time of 0 as unset.
      perf: { now: () => clock.monotonic() + 1 },
    });
  }

  targetOf({ id }: Session): SessionTarget | undefined {
    return this.#targets.get(id);
  }

  /** `last`: what served the session before. A hedge does not move it: the prompt is cached at its last target. */
  noteAnswer({ id }: Session, last: SessionTarget | undefined, attempt: Attempt, forMs: number): void {
    if (last !== undefined && attempt.hedge === true) return;
    const { provider, model, credential } = attempt;
    const isUnchanged = last?.credential === credential && last.model === model;
    this.#targets.set(id, isUnchanged ? last : { provider, model, credential }, { ttl: forMs });
  }
}
