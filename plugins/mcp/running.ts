/** Requests that run in this process: how many of an account, and by what name their clients can cancel them. */
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import { caller } from '../common/domain/accounts.ts';

const longestName = 128;

export class Running {
  readonly #counts = new Map<string, number>();
  readonly #named = new Map<string, AbortController>();

  /** Counts the request until its exchange ends, and gives the signal that ends it. 429 beyond `most`. */
  enter(exchange: Exchange, message: JsonObject, most: number): AbortSignal {
    const { accountId } = exchange.get(caller);
    const count = this.#counts.get(accountId) ?? 0;
    if (count >= most)
      throw new GatewayError(
        'rate_limited',
        `This account has ${most} requests to tools running; wait for one to end.`,
        {
          code: 'tool_concurrency',
          retryAfterMs: 1_000,
        },
      );
    this.#counts.set(accountId, count + 1);
    const name = nameOf(exchange, message['id']);
    const controller = new AbortController();
    if (name !== undefined) this.#named.set(name, controller);
    exchange.defer(() => {
      const rest = this.#counts.get(accountId)! - 1;
      if (rest === 0) this.#counts.delete(accountId);
      else this.#counts.set(accountId, rest);
      if (name !== undefined && this.#named.get(name) === controller) this.#named.delete(name);
    });
    return AbortSignal.any([exchange.signal, controller.signal]);
  }

  /** Ends the request that a notification of the client names, if it runs here. */
  cancel(exchange: Exchange, { params }: JsonObject): void {
    const name = nameOf(exchange, isObject(params) ? params['requestId'] : undefined);
    if (name !== undefined) this.#named.get(name)?.abort();
  }
}

/** Ids are unique within a session alone; without one no other request can mean this one. */
function nameOf(exchange: Exchange, id: unknown): string | undefined {
  const session = exchange.request.headers['mcp-session-id'];
  if (session === undefined || session.length > longestName) return undefined;
  if (typeof id !== 'number' && (typeof id !== 'string' || id.length > longestName)) return undefined;
  return JSON.stringify([exchange.get(caller).keyId, session, id]);
}
