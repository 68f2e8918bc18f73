/** A vendor's own list of models, each with what the configuration and the shipped prices know of it. */
import type { Host } from '../../core/contract/contract.ts';
import { type VendorAnswer, type VendorModelView, vendorLists } from '../common/domain/admin/vendor-setup.ts';
import { shippedModel } from './checks/doubtful-prices.ts';
import type { ModelsConfig } from './config.ts';
import { ListFailure, readVendorModels, type VendorModel } from './vendor-models.ts';
import { entryOf, isTarget } from './vendor-models-command.ts';

export function openVendorLists(host: Host, config: () => ModelsConfig): void {
  const { clock } = host;
  host.provide(vendorLists, {
    async read({ provider, key, credential, fetch }): Promise<VendorAnswer> {
      const startedAt = clock.monotonic();
      const tookMs = () => Math.round(clock.monotonic() - startedAt);
      try {
        const { models, others } = await readVendorModels(provider, { key, credential }, fetch);
        const views = models.map((model) => viewOf(config(), provider.name, model));
        return {
          ok: true,
          status: undefined,
          error: undefined,
          isPrivate: false,
          tookMs: tookMs(),
          models: views,
          others,
        };
      } catch (error) {
        if (!(error instanceof ListFailure)) throw error;
        const { vendorStatus: status, message, isPrivate } = error;
        return { ok: false, status, error: message, isPrivate, tookMs: tookMs(), models: [], others: [] };
      }
    },
  });
}

function viewOf(config: ModelsConfig, provider: string, model: VendorModel): VendorModelView {
  const { id } = model;
  const entry = entryOf(provider, model);
  if (isTarget(config, provider, id)) return { id, state: 'served', entry };
  if (Object.hasOwn(config, id)) return { id, state: 'known', entry };
  const { price, price_source: source } = shippedModel(id) ?? {};
  if (price === undefined || /\de-\d/.test(JSON.stringify(price))) return { id, state: 'unpriced', entry };
  return { id, state: 'priced', entry: { ...entry, price, ...(source === undefined ? {} : { price_source: source }) } };
}
