/** Own cost where the operator says none: at a model's maker it is what the maker asks publicly. Pure. */
import type { Providers } from '../common/domain/upstreams.ts';
import type { ModelsConfig } from './config.ts';

/**
 * The section with the list price as the cost of targets at the maker itself. Checks of sales below cost are made without it: a list price is no
 * contract, and who sells below it may pay less.
 */
export function withListCosts(config: ModelsConfig, providers: Pick<Providers, 'find'>): ModelsConfig {
  return Object.fromEntries(
    Object.entries(config).map(([id, model]) => {
      const { list_price: cost } = model;
      if (cost === undefined || model.cost !== undefined) return [id, model];
      const targets = model.targets.map((target) =>
        target.cost === undefined && providers.find(target.provider)?.vendor === model.owned_by
          ? { ...target, cost }
          : target,
      );
      return [id, { ...model, targets }];
    }),
  );
}
