/** Problems of configured prices, present or near: gaps, ends, examples, unknown names. Pure. */

import type { Plans } from '../common/domain/plans.ts';
import { changesFrom, type PriceBook, versionAt } from '../common/domain/prices.ts';
import { toolClasses } from '../common/domain/usage.ts';
import type { ModelsConfig } from './config.ts';
import { lacks } from './price-config.ts';

interface Ending {
  readonly model: string;
  readonly version: string;
  readonly at: string;
  /** The next version; undefined: none, and the model is no longer sold. */
  readonly next: string | undefined;
}

export interface PriceReport {
  /** Models without any price. */
  readonly unpriced: string[];
  /** Models with a price that begins later, pauses or ends for good. */
  readonly gaps: { readonly model: string; readonly from: string }[];
  readonly examples: string[];
  /** Versions that end soon. */
  readonly endings: Ending[];
  /** Models that plans allow and the catalogue lacks. */
  readonly unknown: { readonly model: string; readonly plan: string }[];
  /** Sold models without a known cost. */
  readonly costless: string[];
  /** Chat models with no price for the vendor's own tools: such calls are free. */
  readonly toolless: string[];
}

export function reportPrices(
  config: ModelsConfig,
  plans: Plans | undefined,
  at: number,
  withinMs: number,
): PriceReport {
  const entries = Object.entries(config);
  const priced = entries.flatMap(([model, { price }]) => (price === undefined ? [] : [{ model, book: price }]));
  return {
    unpriced: entries.filter(([, section]) => section.price === undefined).map(([id]) => id),
    gaps: priced.flatMap(({ model, book }) => {
      const from = changesFrom(book, at).find((time) => versionAt(book, time) === undefined);
      return from === undefined ? [] : [{ model, from: isoTime(from) }];
    }),
    examples: entries.filter(([, section]) => section.price_source === 'example').map(([id]) => id),
    endings: priced.flatMap(({ model, book }) => endingsOf(model, book, at, at + withinMs)),
    unknown: unknownNames(config, plans),
    costless: entries
      .filter(([, { price, cost, targets }]) => {
        const known = cost !== undefined || targets.every((target) => target.cost !== undefined);
        return price !== undefined && !known;
      })
      .map(([id]) => id),
    toolless: entries
      .filter(([, { kind, price }]) => kind === 'chat' && price !== undefined && lacks(price, toolClasses))
      .map(([id]) => id),
  };
}

function endingsOf(model: string, book: PriceBook, at: number, until: number): Ending[] {
  const times = changesFrom(book, at).filter((time) => time > at && time <= until);
  return times.flatMap((time): Ending[] => {
    const ended = versionAt(book, time - 1);
    const next = versionAt(book, time);
    if (ended === undefined || ended === next) return [];
    return [{ model, version: ended.name, at: isoTime(time), next: next?.name }];
  });
}

function unknownNames(config: ModelsConfig, plans: Plans | undefined): { model: string; plan: string }[] {
  const known = new Set(Object.entries(config).flatMap(([id, { aliases }]) => [id, ...aliases]));
  return (plans?.list() ?? []).flatMap((plan) =>
    [...(plan.models ?? [])].filter((name) => !known.has(name)).map((model) => ({ model, plan: plan.name })),
  );
}

export function isoTime(at: number): string {
  return new Date(at).toISOString().replace(':00.000Z', 'Z');
}
