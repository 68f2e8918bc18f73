/** `providers import-models NAME`: the models of a configured vendor as YAML to paste, priced where a public list has them. */
import { stringify } from 'yaml';
import type { Command, CommandResult } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { UpstreamNetwork } from '../../core/contract/exchange.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { fetchOver } from '../../core/tools/network.ts';
import { type Provider, providers } from '../common/domain/upstreams.ts';
import { type ModelConfig, type ModelsConfig, modelsSchema } from './config.ts';
import { findPrice, readList } from './import-command.ts';
import { type Fetch, readVendorModels, type VendorModel } from './vendor-models.ts';

type Values = Parameters<Command['run']>[0];

export function vendorModelsCommand(host: Host, config: ModelsConfig): Command {
  return {
    name: 'providers import-models',
    summary: "Prints the models that a provider's vendor lists, as YAML to paste; prices by --prices",
    arguments: ['<provider>'],
    options: { '--prices <file>': 'Public price list (JSON), as for `prices import`; without it no model is priced' },
    run: (values) => importModels(host, config, values),
  };
}

async function importModels(host: Host, config: ModelsConfig, values: Values): Promise<CommandResult> {
  const name = String(values['provider']);
  const provider = providerNamed(host, name);
  const taken = host.get(providers).acquireKey(name, '');
  if (!('key' in taken)) throw new GatewayError('conflict', `No key of "${name}" can be used at the moment.`);
  const { models: listed, others } = await readVendorModels(provider, taken, fetchBy(taken.network));
  const { prices: file } = values;
  const list = typeof file === 'string' ? await readList(file) : undefined;
  const priceOf = (model: VendorModel) => {
    if (list === undefined) return {};
    const found = findPrice(model.id, asConfigured(name, model), list, host.clock.now(), String(file));
    return 'why' in found ? {} : { price: found.price, price_source: found.source };
  };
  const isKnown = ({ id }: VendorModel) => Object.hasOwn(config, id) || isTarget(config, name, id);
  const fresh = listed.filter((model) => !isKnown(model));
  const models = Object.fromEntries(fresh.map((model) => [model.id, { ...entryOf(name, model), ...priceOf(model) }]));
  const left = { known: listed.filter(isKnown).map(({ id }) => id), others, hasPrices: list !== undefined };
  return {
    json: { provider: name, models, configured: left.known, others },
    text: textOf(host, name, models, left),
  };
}

/** A model may have another id here than at the vendor. */
export function isTarget(config: ModelsConfig, provider: string, upstreamModel: string): boolean {
  return Object.values(config).some(({ targets }) =>
    targets.some((target) => target.provider === provider && target.model === upstreamModel),
  );
}

function providerNamed(host: Host, name: string): Provider {
  const service = host.get(providers);
  const found = service.find(name);
  if (found !== undefined) return found;
  const configured = service.configured?.() ?? new Map<string, never>();
  const message = configured.has(name)
    ? `The provider "${name}" has no key.`
    : `There is no provider "${name}"${didYouMean(name, configured.keys()) || '.'}`;
  throw new GatewayError('not_found', message, { field: 'provider' });
}

const connectTimeoutMs = 10_000;

/** A redirect would take the key elsewhere. */
function fetchBy(network: UpstreamNetwork | undefined): Fetch {
  const send = fetchOver(network, connectTimeoutMs);
  return (url, init) => send(url, { ...init, redirect: 'error' });
}

export function entryOf(provider: string, model: VendorModel) {
  const { id, ownedBy, displayName, contextTokens, maxOutputTokens, created } = model;
  return {
    owned_by: ownedBy ?? provider,
    ...(displayName === undefined ? {} : { display_name: displayName }),
    targets: [`${provider}/${id}`],
    ...(contextTokens === undefined ? {} : { context: contextTokens }),
    ...(maxOutputTokens === undefined ? {} : { max_output: maxOutputTokens }),
    ...(created === undefined ? {} : { created }),
  };
}

function asConfigured(provider: string, model: VendorModel): ModelConfig {
  return modelsSchema.parse({ [model.id]: entryOf(provider, model) })[model.id]!;
}

function textOf(
  host: Host,
  provider: string,
  models: Readonly<Record<string, object>>,
  { known, others, hasPrices }: { known: readonly string[]; others: readonly string[]; hasPrices: boolean },
): string {
  const day = new Date(host.clock.now()).toISOString().slice(0, 10);
  const unpriced = Object.values(models).filter((model) => !('price' in model)).length;
  return [
    `# Models of ${provider}, as listed by the vendor on ${day}.`,
    ...(unpriced > 0 ? [`# Without a price, and so not sold until they have one: ${unpriced}.`] : []),
    ...(unpriced > 0 && !hasPrices
      ? ["# `--prices FILE` prices them by a public list: LiteLLM's model_prices_and_context_window.json."]
      : []),
    ...(known.length > 0 ? [`# Configured already, and left out: ${known.join(', ')}.`] : []),
    ...(others.length > 0 ? [`# No chat models by their names, and left out: ${others.join(', ')}.`] : []),
    stringify({ models }, { lineWidth: 120 }).trimEnd(),
  ].join('\n');
}
