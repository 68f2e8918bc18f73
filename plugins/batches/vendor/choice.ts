/** Which vendor's batch API makes a batch, and the way to it. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Headers } from '../../../core/contract/message.ts';
import { authorizations } from '../../common/domain/ledger.ts';
import { catalog, type Model, speaksProtocol } from '../../common/domain/models.ts';
import { type Placement, placed } from '../../common/domain/organizations/placement.ts';
import { mergeTraits } from '../../common/domain/traits.ts';
import { type Provider, providers } from '../../common/domain/upstreams.ts';
import type { Batch } from '../batch.ts';
import type { BatchApi } from './api.ts';
import { contentBatches } from './content-batches.ts';
import { fileBatches } from './file-batches.ts';
import { messageBatches } from './message-batches.ts';
import type { VendorBatch, VendorChoice } from './rows.ts';
import type { WireTarget } from './wire.ts';

const apis: readonly BatchApi[] = [
  fileBatches('chat', '/v1/chat/completions'),
  fileBatches('responses', '/v1/responses'),
  fileBatches('openai-embeddings', '/v1/embeddings'),
  messageBatches,
  contentBatches,
];

export const apiOf = (protocol: string): BatchApi | undefined => apis.find((api) => api.protocol === protocol);

type Finder = Pick<Host, 'find'>;

/** The model's first target with native batches in the protocol of the lines; undefined: there is none. */
export function chooseVendor(
  host: Finder,
  endpoint: string,
  model: string | undefined,
  placement?: Placement,
): VendorChoice | undefined {
  const api = apis.find(({ takes }) => takes(endpoint));
  const entry = model === undefined ? undefined : host.find(catalog)?.find(model);
  const all = host.find(providers);
  const known = all === undefined || placement === undefined ? all : placed(placement, all);
  if (api === undefined || model === undefined || entry === undefined || known === undefined) return undefined;
  if (host.find(authorizations) === undefined) return undefined;
  const { protocol } = api;
  for (const { provider: name } of entry.targets) {
    const provider = known.find(name);
    if (provider === undefined || known.isDisabled?.(name) === true) continue;
    const target = targetIn(entry, provider, protocol);
    if (target !== undefined && isNative(entry, provider, target, protocol))
      return { provider: name, protocol, model: target.model, asked: model };
  }
  return undefined;
}

type ModelTarget = Model['targets'][number];

/** The one that a pinned call goes to: the first of this provider. */
function targetIn(entry: Model, provider: Provider, protocol: string): ModelTarget | undefined {
  return entry.targets.find(
    (target) => target.provider === provider.name && speaksProtocol(target, provider, protocol),
  );
}

function isNative(entry: Model, provider: Provider, target: ModelTarget, protocol: string): boolean {
  const traits = mergeTraits(mergeTraits(provider.dialect?.[protocol], entry.traits), target.traits);
  return traits.batches === 'native';
}

/** undefined: the provider or its key is not configured any more. */
export function wireTargetOf(host: Finder, batch: Batch, vendor: VendorBatch, api: BatchApi): WireTarget | undefined {
  const { provider: name, protocol, model, credential = '' } = vendor;
  const known = host.find(providers);
  const provider = known?.find(name);
  const key = known?.findKey(name, credential);
  const baseUrl = provider?.speaks[protocol];
  if (provider === undefined || key === undefined || baseUrl === undefined) return undefined;
  const upstream = provider.protocolTraits?.[protocol] ?? provider.traits;
  const own = Object.entries(batch.headers).filter(([header]) => api.passedHeaders.includes(header));
  const configured = Object.entries(upstream.headers).map(([header, value]) => [header.toLowerCase(), value]);
  const headers: Headers = { ...api.headers, ...Object.fromEntries([...own, ...configured]) };
  return {
    ...{ baseUrl, model, credential, key: key.key, network: key.network, upstream, headers },
    auth: upstream.auth ?? api.auth,
  };
}
