/** Which other models may serve a call of a model, and mistakes in these settings. */
import type { Exchange, Fault, Notice } from '../../core/contract/contract.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { type Instead, type InsteadReason, insteadReasons, type Model, model } from '../common/domain/models.ts';
import { priceFor, versionAt } from '../common/domain/prices.ts';
import type { UsageClass } from '../common/domain/usage.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';

/** `isCallable`: sold now, and allowed to the caller. `priced`: with what the call changes of its price. */
export function insteadOf(
  exchange: Exchange,
  { instead = {} }: Model,
  find: (id: string) => Model | undefined,
  isCallable: (entry: Model) => boolean,
  priced: (entry: Model) => Model,
): Instead | undefined {
  const known = new Map<string, Model>();
  for (const id of insteadReasons.flatMap((reason) => instead[reason] ?? [])) {
    const entry = find(id);
    if (entry !== undefined && isCallable(entry)) known.set(id, priced(entry));
  }
  if (known.size === 0) return undefined;
  return {
    models: (reason) => (instead[reason] ?? []).flatMap((id) => known.get(id) ?? []),
    all: () => [...new Set(known.values())],
    withdraw: () => known.clear(),
    serve: (entry) => {
      for (const [id, other] of known) if (other === entry) known.delete(id);
      exchange.set(model, entry);
    },
  };
}

/** Kinds that are ordered and made later, or run in sessions of their own: no other model can take these over. */
export const unserved = new Set<ModelConfig['kind']>(['image', 'video', 'realtime']);

export function insteadFaults(config: ModelsConfig): Fault[] {
  const ids = idsIn(config);
  return settings(config).flatMap(([id, section, reason, name]): Fault[] => {
    const path = [id, 'instead', reason];
    const other = ids.get(name);
    if (unserved.has(section.kind))
      return [{ path, message: `no other model can stand in for one of the kind "${section.kind}"` }];
    if (other === undefined) return [{ path, message: `there is no model "${name}"${didYouMean(name, ids.keys())}` }];
    const { kind } = config[other]!;
    if (kind !== section.kind)
      return [{ path, message: `"${name}" is of the kind "${kind}", and this model of the kind "${section.kind}"` }];
    const circle = circleFrom(config, ids, id, reason, other);
    return circle === undefined ? [] : [{ path, message: `comes back to the model itself: ${circle.join(' → ')}` }];
  });
}

function idsIn(config: ModelsConfig): Map<string, string> {
  return new Map(Object.entries(config).flatMap(([id, { aliases }]) => [id, ...aliases].map((name) => [name, id])));
}

function settings(config: ModelsConfig): [string, ModelConfig, InsteadReason, string][] {
  return Object.entries(config).flatMap(([id, section]) =>
    insteadReasons.flatMap((reason) =>
      (section.instead?.[reason] ?? []).map((name): [string, ModelConfig, InsteadReason, string] => [
        id,
        section,
        reason,
        name,
      ]),
    ),
  );
}

/** The way from a model back to itself by the settings of one reason; undefined: there is none. */
function circleFrom(
  config: ModelsConfig,
  ids: ReadonlyMap<string, string>,
  start: string,
  reason: InsteadReason,
  first: string,
): string[] | undefined {
  const seen = new Set<string>();
  const walk = (id: string, way: readonly string[]): string[] | undefined => {
    if (id === start) return [...way, id];
    if (seen.has(id)) return undefined;
    seen.add(id);
    for (const name of config[id]?.instead?.[reason] ?? []) {
      const next = ids.get(name);
      const found = next === undefined ? undefined : walk(next, [...way, id]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return walk(first, [start]);
}

/** Models that cost more than those they stand in for, or that have no price and are never asked. */
export function insteadNotices(config: ModelsConfig, at: number): Notice[] {
  const ids = idsIn(config);
  return settings(config).flatMap(([id, section, reason, name]): Notice[] => {
    const other = config[ids.get(name) ?? ''];
    if (other === undefined || section.price === undefined || versionAt(section.price, at) === undefined) return [];
    const setting = `${id}.instead.${reason}`;
    if (other.price === undefined || versionAt(other.price, at) === undefined)
      return [{ level: 'warning', text: `${setting} names ${name}, which has no price and is never asked` }];
    const classes = dearerClasses(section.price, other.price, at);
    if (classes.length === 0) return [];
    return [
      { level: 'warning', text: `${setting} names ${name}, which is dearer by its price of ${classes.join(', ')}` },
    ];
  });
}

function dearerClasses(own: NonNullable<ModelConfig['price']>, other: typeof own, at: number): UsageClass[] {
  const [price, dearer] = [own, other].map((book) => priceFor(book, at, {}, {})?.price ?? {});
  return (Object.keys(dearer!) as UsageClass[]).filter((name) => (dearer![name] ?? 0n) > (price![name] ?? 0n));
}
