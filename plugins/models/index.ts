/** The model catalogue: which models exist, who may call them, and `GET /v1/models` in the caller's dialect. */
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Notice,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { accounts, type Caller, caller, keyring } from '../common/domain/accounts.ts';
import { alertEvents } from '../common/domain/admin/alerts.ts';
import { priceQueries } from '../common/domain/admin/prices.ts';
import { vendorLists } from '../common/domain/admin/vendor-setup.ts';
import { batchLine, type Call, call, pinned, vendorBatch, vendorBatchService } from '../common/domain/calls.ts';
import { type Catalog, catalog, instead, type Model, model, modelSwitch, priceFloor } from '../common/domain/models.ts';
import { one, timesRatio } from '../common/domain/money.ts';
import { type Placement, placementIn, placementOf } from '../common/domain/organizations/placement.ts';
import { type PlanTerms, plan, plans } from '../common/domain/plans.ts';
import { multipliers } from '../common/domain/price-ratio.ts';
import { type PriceVersion, versionAt } from '../common/domain/prices.ts';
import { mediaProtocols, providers, translations } from '../common/domain/upstreams.ts';
import { dialectOf, renderError } from '../common/kit/dialects.ts';
import { buildCatalog, catalogNotices, offeredBy, planNotices, priceNotices } from './catalog.ts';
import { doubtfulPrices, shippedPrices } from './checks/doubtful-prices.ts';
import { floorFaults, lowestRatioIn, withoutUnusedCosts } from './checks/floors.ts';
import { undersellingPlans } from './checks/undersold.ts';
import { type ModelsConfig, modelsSchema } from './config.ts';
import { insteadFaults, insteadNotices, insteadOf, unserved } from './instead.ts';
import { buildListing, type Listing, quoted, unknownModel } from './listing.ts';
import { priceCommands } from './price-commands.ts';
import { openPriceQueries } from './price-queries.ts';
import { protocolServices, targetFaults, targetNotices } from './target-faults.ts';
import { openVendorLists } from './vendor-lists.ts';

export default definePlugin<ModelsConfig>({
  name: 'models',
  config: modelsSchema,
  services: {
    requires: [providers],
    optional: [...protocolServices, plans, multipliers, accounts, keyring, alertEvents],
    provides: [catalog, priceFloor, priceQueries, vendorLists, modelSwitch],
  },
  requires: [call],
  optional: [caller, plan, pinned],
  sets: [model, instead],
  setup(host, written) {
    const known = host.get(providers);
    let config = written;
    let offered = buildCatalog(config, known);
    const costed = () => withoutUnusedCosts(config, known);
    const current: Catalog = {
      find: (id) => offered.find(id),
      list: () => offeredBy(host.endpoints(), offered.list()),
    };
    host.provide(catalog, current);
    host.provide(
      priceQueries,
      openPriceQueries({ config: () => config, catalog: current, providers: known, clock: host.clock }),
    );
    openVendorLists(host, () => config);
    host.provide(modelSwitch, { serve: (exchange, id) => switchTo(exchange, offered.find(id), offered, host) });
    const lowest = lowestRatioIn(host);
    const belowFloor = (ratio = lowest) => floorFaults(costed(), host.clock.now(), ratio);
    host.provide(priceFloor, {
      losses: (multiplier) => {
        const faults = belowFloor((id, entry) => timesRatio(lowest(id, entry), multiplier));
        return faults.map(({ path, message }) => `${path[0]}: ${message}`);
      },
    });
    let listing: Listing | undefined;
    // Built at the first request: which models can be called depends on plugins below.
    const getListing = () => (listing ??= listingOf(current, host));
    const instance: PluginInstance<ModelsConfig> = {
      endpoints: endpoints(getListing, host),
      applies: usesCatalogue,
      handle: resolveModel(offered, host),
      reload: {
        // Usable targets depend on the providers, which have changed by the time of the commit.
        prepare: (changed) => () => {
          config = changed;
          offered = buildCatalog(config, known);
          listing = undefined;
          instance.handle = resolveModel(offered, host);
        },
      },
      checks: {
        notices: () => [
          ...catalogNotices(config, known),
          ...targetNotices(config, host),
          ...planNotices(config, host.find(plans)?.list() ?? []),
          ...unservedNotices(current, offered),
          ...priceNotices(config, host.clock.now()),
          ...insteadNotices(config, host.clock.now()),
          ...doubtfulPrices(config, host.mode === 'check' ? shippedPrices() : undefined, host.clock.now()),
          ...undersellingPlans(host, costed(), host.clock.now()).map((text) => ({ level: 'warning', text }) as const),
        ],
        problems: () => [...targetFaults(config, host), ...insteadFaults(config), ...belowFloor()],
      },
      commandLine: { commands: priceCommands(host, config) },
    };
    return instance;
  },
});

function listingOf(listed: Catalog, host: Host): Listing {
  const serving = { providers: host.get(providers), translations: host.find(translations) };
  return buildListing(listed, serving, host.find(mediaProtocols)?.paths());
}

/** A file of models that several gateways share may name models that not every gateway serves. */
function unservedNotices(listed: Catalog, offered: Catalog): Notice[] {
  const taken = new Set(listed.list());
  const names = offered.list().flatMap((model) => (taken.has(model) ? [] : [model.id]));
  if (names.length === 0) return [];
  return [{ level: 'info', text: `models that no endpoint of this gateway takes are not listed: ${names.join(', ')}` }];
}

/** An endpoint that sets the entry itself, with a price, calls no model of the catalogue. */
function usesCatalogue({ setsOnOpen = [] }: Endpoint): boolean {
  return setsOnOpen.includes(call) && !setsOnOpen.includes(model);
}

function resolveModel(offered: Catalog, host: Host): NonNullable<PluginInstance['handle']> {
  return function models(exchange, next) {
    const wanted = exchange.get(call);
    const entry = offered.find(wanted.model);
    if (entry === undefined) throw unknownModel(wanted.model);
    // What a vendor has made already was allowed when it was ordered.
    if (exchange.find(vendorBatch) !== 'answer') {
      checkSold(entry, wanted, host);
      const who = exchange.find(caller);
      const ofPlan = exchange.find(plan)?.models;
      // Most calls may ask for all models, and enter no further function.
      if ((who?.models ?? who?.projectModels ?? ofPlan) !== undefined) checkBounds(entry, wanted.model, who, ofPlan);
    }
    const isLine = exchange.find(batchLine) === true;
    exchange.set(model, isLine ? forBatch(entry) : entry);
    if (entry.instead !== undefined) offerOthers(exchange, entry, offered, host, isLine);
    return next();
  };
}

/** What one vendor keeps or has made already stays with its model. */
const staysWithModel = (exchange: Exchange): boolean =>
  exchange.find(pinned) !== undefined || exchange.find(vendorBatch) !== undefined;

function switchTo(exchange: Exchange, other: Model | undefined, offered: Catalog, host: Host): boolean {
  if (other === undefined || unserved.has(other.kind) || staysWithModel(exchange)) return false;
  const { maxOutputTokens = 0, inputTokens } = exchange.get(call);
  const isLargeEnough =
    maxOutputTokens <= (other.maxOutputTokens ?? Number.POSITIVE_INFINITY) &&
    inputTokens <= (other.contextTokens ?? Number.POSITIVE_INFINITY);
  if (other.id === exchange.get(model).id || !isLargeEnough || !callableBy(exchange, host)(other)) return false;
  exchange.find(instead)?.withdraw();
  const isLine = exchange.find(batchLine) === true;
  exchange.set(model, isLine ? forBatch(other) : other);
  if (other.instead !== undefined) offerOthers(exchange, other, offered, host, isLine);
  return true;
}

function offerOthers(exchange: Exchange, entry: Model, offered: Catalog, host: Host, isLine: boolean): void {
  if (staysWithModel(exchange)) return;
  const priced = (other: Model) => (isLine ? forBatch(other) : other);
  const others = insteadOf(exchange, entry, (id) => offered.find(id), callableBy(exchange, host), priced);
  if (others !== undefined) exchange.set(instead, others);
}

/** Whether another model may serve the call for its caller. */
function callableBy(exchange: Exchange, host: Host): (other: Model) => boolean {
  const wanted = exchange.get(call);
  return (other) => {
    if (other.prices === undefined || versionAt(other.prices, host.clock.now()) === undefined) return false;
    try {
      checkSold(other, wanted, host);
      checkAllowed(other, other.id, exchange.find(caller)?.models, '');
      checkAllowed(other, other.id, exchange.find(caller)?.projectModels, '');
      checkAllowed(other, other.id, exchange.find(plan)?.models, '');
      return true;
    } catch {
      return false;
    }
  };
}

/** The entry with its ratio for batches in the ratio that is charged and stored. */
function forBatch(entry: Model): Model {
  return entry.batch === undefined ? entry : { ...entry, multiplier: timesRatio(entry.multiplier ?? one, entry.batch) };
}

/** Checks that the model has a price now, and that its kind fits the endpoint. */
function checkSold(entry: Model, wanted: Call, host: Host): void {
  const prices = entry.prices === undefined ? undefined : versionAt(entry.prices, host.clock.now());
  if (prices === undefined) {
    host.find(alertEvents)?.report('unpriced_model', entry.id);
    throw new GatewayError('not_found', `The model ${quoted(wanted.model)} has no price yet and cannot be called.`, {
      field: 'model',
      code: 'model_not_priced',
    });
  }
  const kind = wanted.kind ?? 'chat';
  if (entry.kind !== kind) {
    const message = `${quoted(wanted.model)} is a model of the kind "${entry.kind}"; this endpoint takes models of the kind "${kind}".`;
    throw new GatewayError('invalid_request', message, { field: 'model', code: 'model_kind' });
  }
  if (!wanted.billable || wanted.services === undefined) return;
  for (const [kind, service] of Object.entries(wanted.services))
    checkService(quoted(wanted.model), service, prices, wanted.serviceFields?.[kind]);
}

/** A service tier changes the operator's cost: without its own price it is not sold. */
function checkService(model: string, service: string, prices: PriceVersion, field: string | undefined): void {
  if (service !== vendorBatchService && prices.prices(service)) return;
  const subject = field === undefined ? 'The request' : `The field "${field}"`;
  const sold = prices.services
    .filter((name) => name !== vendorBatchService)
    .map(quoted)
    .join(', ');
  const tiers = sold === '' ? 'the standard tier alone' : `${sold} and the standard tier`;
  const message =
    `${subject} asks for the service tier ${quoted(service)}, which has no price for the model ${model}. ` +
    `It is sold in ${tiers}.`;
  throw new GatewayError('invalid_request', message, {
    ...(field === undefined ? {} : { field }),
    code: 'service_not_priced',
    shouldRetry: false,
  });
}

function checkBounds(entry: Model, wanted: string, who: Caller | undefined, ofPlan: PlanTerms['models']): void {
  checkAllowed(entry, wanted, who?.models, 'This key');
  checkAllowed(entry, wanted, who?.projectModels, `The project ${quoted(who?.project ?? '')}`);
  checkAllowed(entry, wanted, ofPlan, "The account's plan");
}

function checkAllowed(entry: Model, wanted: string, allowed: ReadonlySet<string> | undefined, who: string): void {
  if (allowed === undefined || allowed.has(entry.id) || allowed.has(wanted)) return;
  throw new GatewayError('forbidden', `${who} may not call the model ${quoted(wanted)}.`, {
    field: 'model',
    code: 'model_not_allowed',
  });
}

const prefixes = ['/v1', '/v1beta', '/v1alpha'];

/** Ids may contain slashes, so the endpoint of one model is a wildcard. */
function endpoints(listing: () => Listing, host: Host): Endpoint[] {
  return prefixes.flatMap((prefix): Endpoint[] => [
    {
      ...common,
      path: `${prefix}/models`,
      describes: [{ summary: 'Lists the models.' }],
      handle: answering(host, ({ request }, placement) => listing().list(dialectOf(request), request.query, placement)),
    },
    {
      ...common,
      path: `${prefix}/models/*`,
      describes: [{ summary: 'Describes a model.', path: `${prefix}/models/{model}` }],
      handle: answering(host, ({ request }, placement) =>
        listing().one(dialectOf(request), request.params['*'] ?? '', placement),
      ),
    },
  ]);
}

type Answering = (exchange: Exchange, placement: Placement | undefined) => Answer;

/** Where the list needs no key, the one that is sent with it counts all the same, if it is valid. */
function answering(host: Host, answer: Answering): NonNullable<Endpoint['handle']> {
  return (exchange) => {
    const { headers, query } = exchange.request;
    const hasKey = keyHeaders.some((name) => headers[name] !== undefined) || query.has('key');
    if (exchange.find(caller) !== undefined || !hasKey) return answer(exchange, placementIn(exchange));
    return placementByKey(host, exchange).then((placement) => answer(exchange, placement));
  };
}

const keyHeaders = ['authorization', 'x-api-key', 'x-goog-api-key'];

async function placementByKey(host: Host, { request }: Exchange): Promise<Placement | undefined> {
  try {
    const who = await host.find(keyring)?.authenticate(request);
    const known = host.find(plans);
    const hasEnded = who?.planEndsAt !== undefined && host.clock.now() >= who.planEndsAt;
    return who && placementOf(who, known?.terms(hasEnded ? known.default : who.plan));
  } catch {
    return undefined;
  }
}

const common = {
  method: 'GET',
  operation: 'models',
  body: 'none',
  renderError: (error, exchange) => renderError(error, dialectOf(exchange.request), exchange.id),
} satisfies Partial<Endpoint>;
