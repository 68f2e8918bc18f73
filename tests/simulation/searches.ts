/** Web searches: the real plugin over an engine that answers, refuses, says what no one can read, breaks off, is silent or away. */
import type { Host, Next } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { LiveExchange } from '../../core/http/exchange.ts';
import { searchSchema } from '../../plugins/web-search/config.ts';
import { prepareSearch } from '../../plugins/web-search/search.ts';
import type { Chance } from './chance.ts';

export const searchFates = ['answers', 'answers', 'refuses', 'unreadable', 'breaks', 'is-silent', 'is-away'] as const;
type Fate = (typeof searchFates)[number];

const config = searchSchema.parse({ key: 'key', api: { url: 'http://127.0.0.1:9/search' } });
const search = { query: 'rain', count: 5, allowed: [], blocked: [], country: undefined, place: undefined };

export interface Engine {
  readonly host: Host;
  readonly chance: Chance;
  readonly fate: Fate;
  readonly passes: (delayMs: number, label: string) => Promise<void>;
  /** The engine has the search, and what it counts of it: all, or nothing. */
  readonly received: () => void;
  readonly becomes: (state: 'answered' | 'refused' | 'broken') => void;
}

/** Below the limiter and the money. */
export function searchWith(exchange: LiveExchange, engine: Engine, next: Next): Promise<Answer> {
  const fetch = () => asked(engine) as unknown as ReturnType<Host['fetch']>;
  const health = { name: 'engine', calls: 0, failed: 0, lastFailureAt: undefined };
  prepareSearch(exchange, { ...engine.host, fetch }, { config, search, health });
  return next();
}

async function asked({ chance, fate, passes, received, becomes }: Engine): Promise<Response> {
  await passes(chance.delay(10), 'search connected');
  if (fate === 'is-away') throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  received();
  await passes(chance.delay(60), `search ${fate}`);
  switch (fate) {
    case 'answers':
      becomes('answered');
      return new Response('{"results":[]}');
    case 'refuses':
      becomes('refused');
      return new Response('', { status: 503 });
    case 'unreadable':
      becomes('refused');
      return new Response('{"error":"no list"}');
    case 'breaks':
      becomes('broken');
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    case 'is-silent':
      becomes('broken');
      throw new DOMException('no answer in time', 'TimeoutError');
  }
}
