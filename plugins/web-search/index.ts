/** Web searches: one endpoint over a search engine of the operator's, each search limited, charged and recorded as calls of models are. */
import {
  defineContextKey,
  definePlugin,
  type Endpoint,
  type Exchange,
  type PluginInstance,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { readBody } from '../../core/json/request-body.ts';
import { caller } from '../common/domain/accounts.ts';
import { attempts, call, spendGuard, usageReport } from '../common/domain/calls.ts';
import { type Model, model } from '../common/domain/models.ts';
import { plan } from '../common/domain/plans.ts';
import { flatBook } from '../common/domain/prices.ts';
import { localUpstreams } from '../common/domain/upstreams.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { ownSearch, type SearchHealth } from '../common/wire/hosted-tools.ts';
import { readSearch } from './asked.ts';
import { type SearchConfig, searchSchema } from './config.ts';
import { type PreparedSearch, prepareSearch, searchModel } from './search.ts';

const askedSearch = defineContextKey<PreparedSearch>('web search');

/** An engine as it is set, and what was seen of it. */
interface Engine {
  readonly config: SearchConfig;
  readonly health: SearchHealth;
}

/** What was seen of an engine stays while it is the same one. */
function engineOf(config: SearchConfig, before?: Engine): Engine {
  const { engine, api } = config;
  const name = engine ?? hostIn(api?.url);
  const isSame = before?.health.name === name && before.config.api?.url === api?.url;
  return { config, health: isSame ? before.health : { name, calls: 0, failed: 0, lastFailureAt: undefined } };
}

const hostIn = (url = '') => (URL.canParse(url) ? new URL(url).host : '') || url;

export default definePlugin<SearchConfig>({
  name: 'web-search',
  config: searchSchema,
  services: { optional: [localUpstreams], provides: [ownSearch] },
  requires: [call, caller, askedSearch],
  optional: [plan, model, spendGuard],
  sets: [attempts, usageReport, upstreamRequest],
  setup(host, configured) {
    let engine = engineOf(configured);
    const endpoint = endpointOf(() => engine);
    host.provide(ownSearch, {
      serves: (exchange) => engine.config.api !== undefined && mayBeUsed(exchange),
      health: () => (engine.config.api === undefined ? undefined : engine.health),
    });
    const instance: PluginInstance<SearchConfig> = {
      endpoints: [endpoint],
      addresses: { pathPrefixes: ['/v1'] },
      applies: (one) => one === endpoint,
      handle: (exchange, next) => {
        prepareSearch(exchange, host, exchange.get(askedSearch));
        return next();
      },
      reload: {
        prepare: (changed) => () => {
          engine = engineOf(changed, engine);
        },
      },
    };
    return instance;
  },
});

function endpointOf(engine: () => Engine): Endpoint {
  return {
    method: 'POST',
    path: '/v1/search',
    operation: 'tool-call',
    body: 'whole',
    setsOnOpen: [call, model, askedSearch],
    optional: [caller, plan],
    describes: [
      {
        summary: 'Searches the web: titles, addresses and texts of pages.',
        body: { types: ['application/json'], required: ['query'] },
      },
    ],
    open: (exchange) => openSearch(exchange, engine()),
    renderError: envelopeAnswer,
  };
}

const single = new Set(['query', 'max_results', 'search_domain_filter', 'country', 'place']);

function openSearch(exchange: Exchange, { config, health }: Engine): void {
  if (config.api === undefined)
    throw new GatewayError('not_found', 'This gateway has no search engine.', { code: 'no_search_engine' });
  if (!mayBeUsed(exchange))
    throw new GatewayError('forbidden', `The key, its project or the plan may not call "${searchModel}".`, {
      code: 'model_not_allowed',
    });
  const search = readSearch(readBody(exchange.request.body, single).json, config.results);
  exchange.set(askedSearch, { search, config, health });
  exchange.set(call, {
    ...{ protocol: searchModel, model: searchModel, stream: false, billable: true },
    ...{ inputTokens: 0, maxOutputTokens: 0, choices: 1, counted: { web_search: 1 } },
  });
  exchange.set(model, entryOf(config));
}

/** A key, a project and a plan that are bound to models have the search that is named among them. */
function mayBeUsed(exchange: Exchange): boolean {
  const who = exchange.find(caller);
  const lists = [who?.models, who?.projectModels, exchange.find(plan)?.models];
  return lists.every((list) => list === undefined || list.has(searchModel));
}

/** What it costs and is called in rows, as the catalogue says it of a model. */
const entryOf = ({ price }: SearchConfig): Model => ({
  ...{ id: searchModel, ownedBy: '', created: 0, displayName: searchModel, kind: 'chat' },
  ...{ targets: [], contextTokens: undefined, maxOutputTokens: 0 },
  prices: flatBook({ web_search: price }, 'searches'),
});
