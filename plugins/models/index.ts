/** The catalogue: which models there are, who may call them, and `GET /v1/models` in the caller's dialect. */
import { definePlugin, type Endpoint } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import {
  type Call,
  call,
  caller,
  catalog,
  type Model,
  model,
  plan,
  providers,
  translations,
} from '../../core/vocabulary.ts';
import { buildCatalog, catalogNotices } from './catalog.ts';
import { type ModelsConfig, modelsSchema } from './config.ts';
import { dialectOf, renderError } from './dialects.ts';
import { buildListing, type Listing, quoted, unknownModel } from './listing.ts';

export default definePlugin<ModelsConfig>({
  name: 'models',
  config: modelsSchema,
  needs: [providers],
  uses: [translations],
  provides: [catalog],
  reads: [call],
  finds: [caller, plan],
  writes: [model],
  setup(host, config) {
    const known = host.need(providers);
    const offered = buildCatalog(config, known);
    host.provide(catalog, offered);
    let listing: Listing | undefined;
    // Worded at the first question: what can be called depends on plugins below.
    const worded = () => (listing ??= buildListing(offered, known, host.find(translations)));
    return {
      endpoints: endpoints(worded),
      applies: (endpoint) => endpoint.states?.includes(call) ?? false,
      async handle(exchange, next) {
        const wanted = exchange.get(call);
        const entry = offered.find(wanted.model);
        if (entry === undefined) throw unknownModel(wanted.model);
        checkSold(entry, wanted);
        checkAllowed(entry, wanted, exchange.find(caller)?.models, 'This key');
        checkAllowed(entry, wanted, exchange.find(plan)?.models, "The account's plan");
        exchange.set(model, entry);
        return next();
      },
      notices: () => catalogNotices(config, known),
    };
  },
});

/** It has a price, and it makes what this endpoint is for. */
function checkSold(entry: Model, wanted: Call): void {
  const name = quoted(wanted.model);
  if (entry.price === undefined) {
    throw new GatewayError('not_found', `The model ${name} has no price yet and cannot be called.`, {
      field: 'model',
      code: 'model_not_priced',
    });
  }
  const kind = wanted.kind ?? 'chat';
  if (entry.kind === kind) return;
  const message = `${name} is a model of the kind "${entry.kind}"; this endpoint takes models of the kind "${kind}".`;
  throw new GatewayError('invalid_request', message, { field: 'model', code: 'model_kind' });
}

function checkAllowed(entry: Model, wanted: Call, allowed: ReadonlySet<string> | undefined, who: string): void {
  if (allowed === undefined || allowed.has(entry.id) || allowed.has(wanted.model)) return;
  throw new GatewayError('forbidden', `${who} may not call the model ${quoted(wanted.model)}.`, {
    field: 'model',
    code: 'model_not_allowed',
  });
}

const prefixes = ['/v1', '/v1beta', '/v1alpha'];

/** Ids may contain slashes, so one model is a wildcard. */
function endpoints(listing: () => Listing): Endpoint[] {
  return prefixes.flatMap((prefix): Endpoint[] => [
    {
      ...common,
      path: `${prefix}/models`,
      handle: ({ request }) => listing().list(dialectOf(request), request.query),
    },
    {
      ...common,
      path: `${prefix}/models/*`,
      handle: ({ request }) => listing().one(dialectOf(request), request.params['*'] ?? ''),
    },
  ]);
}

const common = {
  method: 'GET',
  operation: 'models',
  body: 'none',
  renderError: (error, exchange) => renderError(error, dialectOf(exchange.request), exchange.id),
} satisfies Partial<Endpoint>;
