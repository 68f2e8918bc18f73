/** One search as an attempt: recorded before it is sent, charged when the engine has answered. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { Unfetchable } from '../../core/tools/guarded-fetch.ts';
import { defineOperatorEvent, recordEvent } from '../common/domain/timeline.ts';
import { localUpstreams } from '../common/domain/upstreams.ts';
import { OwnAttempt } from '../common/kit/fetch/own-attempt.ts';
import type { SearchHealth } from '../common/wire/hosted-tools.ts';
import { requestFor, resultsIn, type SearchResult } from './api.ts';
import type { AskedSearch } from './asked.ts';
import type { SearchApi, SearchConfig } from './config.ts';

export const searchModel = 'web-search';

const searchedEvent = defineOperatorEvent(
  'web-search.searched',
  (end: string, results: number, durationMs: number) =>
    `the search engine ${ends[end as keyof typeof ends] ?? end} with ${results} results after ${durationMs} ms`,
);
const ends = { not_sent: 'was not asked', answered: 'answered', refused: 'refused', unknown: 'gave no answer' };

/** Nothing was sent. */
const unconnected = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
]);

export interface PreparedSearch {
  readonly config: SearchConfig;
  readonly search: AskedSearch;
  readonly health: SearchHealth;
}

/** The centre makes the search, so that it is journaled as any attempt is. */
export function prepareSearch(exchange: Exchange, host: Host, { config, search, health }: PreparedSearch): void {
  const running = new RunningSearch(exchange, host, config, search);
  running.sendOver(false, async ({ begin }) => {
    await running.begin(begin);
    try {
      return await running.answer();
    } catch (error) {
      health.failed++;
      health.lastFailureAt = host.clock.now();
      throw error;
    } finally {
      health.calls++;
    }
  });
}

class RunningSearch extends OwnAttempt {
  readonly #host: Host;
  readonly #config: SearchConfig;
  readonly #search: AskedSearch;

  constructor(exchange: Exchange, host: Host, config: SearchConfig, search: AskedSearch) {
    const named = { provider: searchModel, model: searchModel, credential: searchModel, protocol: searchModel };
    super(exchange, named, host.clock.now());
    this.#host = host;
    this.#config = config;
    this.#search = search;
  }

  async answer(): Promise<Answer> {
    const since = this.#host.clock.monotonic();
    let results: readonly SearchResult[] = [];
    try {
      results = await this.#results();
    } catch (error) {
      throw this.#failed(error);
    } finally {
      const durationMs = Math.round(this.#host.clock.monotonic() - since);
      this.attempt.durationMs = durationMs;
      const values = [this.attempt.result, results.length, durationMs] as const;
      recordEvent(this.exchange, this.#host.clock.now(), searchedEvent, values);
    }
    const body = JSON.stringify({ id: this.exchange.id, results });
    return { status: 200, headers: { 'content-type': 'application/json' }, body };
  }

  /** A client that leaves does not end it: the engine has counted the search, and its answer says what it was. */
  async #results(): Promise<readonly SearchResult[]> {
    const { key, within, answer: maxBytes, allow_private, text: longestText } = this.#config;
    const api = this.#config.api!;
    const { url, isLocal } = addressOf(api, this.#host);
    const { url: address, ...request } = requestFor(api, url, key, this.#search);
    const allowPrivate = isLocal || allow_private;
    const answer = await this.#host.fetch(address, { ...request, timeoutMs: within, maxBytes, allowPrivate });
    this.attempt.status = answer.status;
    const text = await answer.text();
    if (!answer.ok) throw new Refused();
    const results = resultsIn(text, api, this.#search, longestText);
    if (results === undefined) throw new Refused();
    this.attempt.result = 'answered';
    this.usage = { web_search: 1 };
    return results;
  }

  #failed(error: unknown): GatewayError {
    const { name, code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
    const wasNotSent = (error instanceof Unfetchable && error.status === undefined) || unconnected.has(String(code));
    const { status } = this.attempt;
    // A client that leaves breaks nothing off here.
    this.attempt.failedFirst = true;
    if (error instanceof Refused) this.attempt.result = 'refused';
    else this.attempt.result = wasNotSent ? 'not_sent' : 'unknown';
    this.attempt.error = error instanceof Refused ? `status ${status}` : String(name ?? code).slice(0, 64);
    this.#host.log.warn({ status, error }, 'a search engine gave no results');
    if (name === 'TimeoutError')
      return new GatewayError('upstream_timeout', 'The search engine did not answer in time.', {
        code: 'search_timeout',
      });
    const message = 'The search engine did not answer as it should.';
    return new GatewayError('upstream_failed', message, { code: 'search_failed' });
  }
}

/** The engine's answer has no results that can be read. */
class Refused extends Error {
  override readonly name = 'Refused';
}

function addressOf({ url = '' }: SearchApi, host: Host): { readonly url: string; readonly isLocal: boolean } {
  if (/^https?:/.test(url)) return { url, isLocal: false };
  const colon = url.indexOf(':');
  const origin = host.find(localUpstreams)?.origin(url.slice(0, colon));
  if (origin === undefined) throw new Unfetchable('no such vendor runs inside this process');
  return { url: new URL(url.slice(colon + 1), origin).href, isLocal: true };
}
