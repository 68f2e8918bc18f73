/** What the pages say of this gateway, as one reader sees it: models with their prices, plans, endpoints. */
import type { Endpoint, Host } from '../../../core/contract/contract.ts';
import { keyRules } from '../../common/domain/accounts.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import { priceQueries } from '../../common/domain/admin/prices.ts';
import { type ErrorShape, errorShape } from '../../common/domain/error-shape.ts';
import { catalog, type Model } from '../../common/domain/models.ts';
import { one, parseRatio, type Ratio } from '../../common/domain/money.ts';
import { type PriceSheet, sheetOf } from '../../common/domain/pages/price-sheet.ts';
import { type PlanOffer, plans } from '../../common/domain/plans.ts';
import { multipliers, planRatio, ratioOf } from '../../common/domain/price-ratio.ts';

/** Who is charged: the default plan stands for strangers. */
export interface Buyer {
  readonly plan: string | undefined;
  readonly multiplier: Ratio;
}

export interface ModelFacts extends Pick<Model, 'id' | 'ownedBy' | 'displayName' | 'kind' | 'limits'> {
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly efforts: readonly string[];
  readonly modalities: readonly string[];
  /** undefined: prices are not shown. */
  readonly sheet: PriceSheet | undefined;
  /** Whether the reader's plan includes it. */
  readonly isAllowed: boolean;
}

export interface Facts {
  readonly name: string;
  /** Without a slash at its end. */
  readonly address: string;
  readonly models: readonly ModelFacts[];
  readonly plans: readonly PlanOffer[];
  readonly plan: string | undefined;
  /** Whether the plan is the reader's own. */
  readonly isKnown: boolean;
  readonly showsPrices: boolean;
  readonly showsModels: boolean;
  /** Where keys are expected: `bearer`, `query`, or the name of a header. */
  readonly carriers: readonly string[];
  readonly endpoints: readonly Endpoint[];
  readonly needsKey: (endpoint: Endpoint) => boolean;
  readonly errorShape: ErrorShape | undefined;
  /** Where people make keys. */
  readonly hasConsole: boolean;
}

export interface View {
  readonly name: string;
  readonly address: string;
  readonly buyer: Buyer;
  /** Whether the reader is a client of this gateway. */
  readonly isKnown: boolean;
  readonly showsModels: boolean;
  readonly showsPrices: boolean;
  readonly hasConsole: boolean;
}

export function gatherFacts(host: Host, view: View): Facts {
  const { name, address, buyer, isKnown, showsModels, showsPrices, hasConsole } = view;
  const rules = host.find(keyRules);
  const offers = host.find(plans);
  return {
    name,
    address,
    isKnown,
    showsPrices,
    showsModels,
    hasConsole,
    models: showsModels ? modelsOf(host, buyer, showsPrices) : [],
    plans: (offers?.list() ?? []).flatMap((terms) => offers?.offer(terms.name) ?? []),
    plan: buyer.plan,
    carriers: rules?.carriers() ?? ['bearer'],
    endpoints: host.endpoints().filter(({ describes }) => describes !== undefined),
    needsKey: (endpoint) => rules?.needsKey(endpoint) ?? endpoint.keyless !== true,
    errorShape: host.find(errorShape),
  };
}

/** What accounts are on in a gateway without plans. */
const planWithoutPlans = 'default';

/** Those that are sold now. */
function modelsOf(host: Host, buyer: Buyer, showsPrices: boolean): ModelFacts[] {
  const sources = { multipliers: host.find(multipliers), plans: host.find(plans) };
  const ofPlan = planRatio(sources, buyer.plan ?? planWithoutPlans);
  const allowed = buyer.plan === undefined ? undefined : sources.plans?.terms(buyer.plan).models;
  const modalities = new Map((host.find(priceQueries)?.list() ?? []).map((row) => [row.id, row.modalities]));
  const now = host.clock.now();
  return (host.find(catalog)?.list() ?? []).flatMap((model) => {
    const ratio = ratioOf({ plan: ofPlan, model: model.multiplier, account: buyer.multiplier });
    const sheet = sheetOf(model.prices, now, ratio);
    if (sheet === undefined) return [];
    const { id, ownedBy, displayName, kind, limits, contextTokens, maxOutputTokens, traits } = model;
    return {
      ...{ id, ownedBy, displayName, kind, contextTokens, maxOutputTokens },
      ...(limits === undefined ? {} : { limits }),
      efforts: traits?.efforts ?? [],
      modalities: modalities.get(id) ?? [],
      sheet: showsPrices ? sheet : undefined,
      isAllowed: allowed === undefined || allowed.has(id),
    };
  });
}

/** The plan and ratio of an account; without one those of the default plan. */
export async function buyerOf(host: Host, accountId: string | undefined): Promise<Buyer> {
  const account = accountId === undefined ? undefined : await host.find(accountAdmin)?.find(accountId);
  return {
    plan: account?.plan ?? host.find(plans)?.default,
    multiplier: account?.multiplier === undefined ? one : parseRatio(account.multiplier),
  };
}

/** A model that examples can name: sold to the reader, of a name that needs no quotes anywhere. */
export function exampleModel({ models }: Pick<Facts, 'models'>, kind: Model['kind']): ModelFacts | undefined {
  const fitting = models.filter((model) => model.kind === kind && model.limits?.needsImage !== true);
  const named = fitting.filter(({ id }) => /^[\w.:@/-]+$/.test(id));
  return named.find(({ isAllowed }) => isAllowed) ?? named[0];
}

/** The cheapest of the same maker with a long context, for the side jobs of coding clients. */
export function smallModel<Main extends Pick<ModelFacts, 'ownedBy' | 'sheet'>>(
  { models }: Pick<Facts, 'models'>,
  main: Main,
): ModelFacts | Main {
  const inputOf = ({ sheet }: Pick<ModelFacts, 'sheet'>) =>
    Number(sheet?.lines.find((line) => line.class === 'input')?.yours);
  const others = models.filter(
    (model) =>
      model.kind === 'chat' &&
      model.ownedBy === main.ownedBy &&
      model.isAllowed &&
      /^[\w.:@/-]+$/.test(model.id) &&
      (model.contextTokens ?? 0) >= 100_000 &&
      inputOf(model) < inputOf(main),
  );
  return others.toSorted((left, right) => inputOf(left) - inputOf(right))[0] ?? main;
}
