/** The catalogue: which models there are, who may call them, and `GET /v1/models` in the caller's dialect. */
import { definePlugin, type Endpoint, type Host, type Notice, type Part } from '../../core/contract.ts';
import { priceDesk } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { timesRatio } from '../../core/money.ts';
import { type PriceVersion, versionAt } from '../../core/prices.ts';
import {
  accounts,
  type Call,
  type Catalog,
  call,
  caller,
  catalog,
  type Model,
  model,
  multipliers,
  plan,
  plans,
  priceFloor,
  providers,
  translations,
} from '../../core/vocabulary.ts';
import { buildCatalog, catalogNotices, priceNotices, takenBy } from './catalog.ts';
import { type ModelConfig, type ModelsConfig, modelsSchema } from './config.ts';
import { openDesk } from './desk.ts';
import { dialectOf, renderError } from './dialects.ts';
import { floorFaults, lowestRatio } from './floors.ts';
import { buildListing, type Listing, quoted, unknownModel } from './listing.ts';
import { priceCommands } from './price-commands.ts';
import { undersellingPlans } from './undersold.ts';

export default definePlugin<ModelsConfig>({
  name: 'models',
  config: modelsSchema,
  needs: [providers],
  uses: [translations, plans, multipliers, accounts],
  provides: [catalog, priceFloor, priceDesk],
  reads: [call],
  finds: [caller, plan],
  writes: [model],
  setup(host, written) {
    const known = host.need(providers);
    let config = written;
    let offered = buildCatalog(config, known);
    const current: Catalog = {
      find: (id) => offered.find(id),
      list: () => takenBy(host.endpoints(), offered.list()),
    };
    host.provide(catalog, current);
    host.provide(priceDesk, openDesk({ config: () => config, catalog: current, providers: known, clock: host.clock }));
    const lowest = (id: string, entry: ModelConfig) => lowestRatio(id, entry, host.find(plans), host.find(multipliers));
    host.provide(priceFloor, {
      losses: (multiplier) =>
        floorFaults(config, host.clock.now(), (id, entry) => timesRatio(lowest(id, entry), multiplier)).map(
          ({ path, message }) => `${path[0]}: ${message}`,
        ),
    });
    let listing: Listing | undefined;
    // Worded at the first question: what can be called depends on plugins below.
    const worded = () => (listing ??= buildListing(current, known, host.find(translations)));
    const part: Part<ModelsConfig> = {
      endpoints: endpoints(worded),
      applies: (endpoint) => endpoint.states?.includes(call) ?? false,
      handle: stating(offered, host),
      // Who can serve a model is for the providers to say, and they have changed by the time this is taken up.
      prepare: (changed) => () => {
        config = changed;
        offered = buildCatalog(config, known);
        listing = undefined;
        part.handle = stating(offered, host);
      },
      notices: () => [
        ...catalogNotices(config, known),
        ...untakenNotices(current, offered),
        ...priceNotices(config, host.clock.now()),
        ...undersellingPlans(config, host.find(plans), host.find(multipliers), host.clock.now()).map(
          (text) => ({ level: 'warning', text }) as const,
        ),
      ],
      problems: () => floorFaults(config, host.clock.now(), lowest),
      commands: priceCommands(host, config),
    };
    return part;
  },
});

/** A file of models that several gateways share names some that not each of them serves. */
function untakenNotices(listed: Catalog, offered: Catalog): Notice[] {
  const taken = new Set(listed.list());
  const names = offered.list().flatMap((model) => (taken.has(model) ? [] : [model.id]));
  if (names.length === 0) return [];
  return [{ level: 'info', text: `models that no endpoint of this gateway takes are not listed: ${names.join(', ')}` }];
}

function stating(offered: Catalog, host: Host): NonNullable<Part['handle']> {
  return async function models(exchange, next) {
    const wanted = exchange.get(call);
    const entry = offered.find(wanted.model);
    if (entry === undefined) throw unknownModel(wanted.model);
    checkSold(entry, wanted, host.clock.now());
    checkAllowed(entry, wanted, exchange.find(caller)?.models, 'This key');
    checkAllowed(entry, wanted, exchange.find(plan)?.models, "The account's plan");
    exchange.set(model, entry);
    return next();
  };
}

/** It has a price now, and it makes what this endpoint is for. */
function checkSold(entry: Model, wanted: Call, at: number): void {
  const name = quoted(wanted.model);
  const prices = entry.prices === undefined ? undefined : versionAt(entry.prices, at);
  if (prices === undefined) {
    throw new GatewayError('not_found', `The model ${name} has no price yet and cannot be called.`, {
      field: 'model',
      code: 'model_not_priced',
    });
  }
  const kind = wanted.kind ?? 'chat';
  if (entry.kind !== kind) {
    const message = `${name} is a model of the kind "${entry.kind}"; this endpoint takes models of the kind "${kind}".`;
    throw new GatewayError('invalid_request', message, { field: 'model', code: 'model_kind' });
  }
  if (!wanted.billable) return;
  for (const service of Object.values(wanted.services ?? {})) checkService(name, service, prices);
}

/** A service beyond the standard one costs the operator more, or less: without a price of its own it is not sold. */
function checkService(model: string, service: string, prices: PriceVersion): void {
  if (prices.prices(service)) return;
  const message = `The service ${quoted(service)} has no price for the model ${model}: leave it out of the request.`;
  throw new GatewayError('invalid_request', message, { code: 'service_not_priced', shouldRetry: false });
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
