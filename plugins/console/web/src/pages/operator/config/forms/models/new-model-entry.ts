/** A new model as it is filled in: its faults, and the members that are written for it. Pure. */
import type { ModelKind } from '../../../../../../../../common/domain/models.ts';
import type { FormMap, FormValue } from '../edit-yaml.ts';
import { isAmount, isTokenCount } from './model-kinds.ts';

/** Amounts by class, as they were typed. */
export type Amounts = ReadonlyMap<string, string>;

export interface NewTarget {
  readonly provider: string;
  /** The name of the model there; empty: the same. */
  readonly model: string;
  /** Empty: all that the provider speaks. */
  readonly protocols: readonly string[];
  /** The operator's price there. */
  readonly cost: Amounts;
}

export interface NewModel {
  readonly name: string;
  readonly kind: ModelKind;
  readonly displayName: string;
  /** Empty: the first provider. */
  readonly owner: string;
  readonly targets: readonly NewTarget[];
  /** `context` and `max_output`. */
  readonly sizes: Amounts;
  readonly limits: Amounts;
  readonly price: Amounts;
}

/** Keys of texts. */
export type Fault = 'nameMissing' | 'nameTaken' | 'vendorMissing' | 'amountWrong' | 'countWrong' | 'sizeWrong';

const namePattern = /^[^\s?#/\p{C}][^\s?#\p{C}]{0,199}$/u;

/** Faults by field: `name`, `targets.0.provider`, `targets.0.cost.input`, `price.input`, `sizes.context` … */
export function faultsOf(model: NewModel, taken: ReadonlySet<string>): ReadonlyMap<string, Fault> {
  const faults = new Map<string, Fault>();
  const name = model.name.trim();
  if (!namePattern.test(name)) faults.set('name', 'nameMissing');
  else if (taken.has(name)) faults.set('name', 'nameTaken');
  const amounts = (at: string, given: Amounts) => {
    for (const [one, text] of filled(given)) if (!isAmount(text)) faults.set(`${at}.${one}`, 'amountWrong');
  };
  for (const [index, { provider, cost }] of model.targets.entries()) {
    if (provider === '') faults.set(`targets.${index}.provider`, 'vendorMissing');
    amounts(`targets.${index}.cost`, cost);
  }
  amounts('price', model.price);
  for (const [one, text] of filled(model.sizes)) if (!isTokenCount(text)) faults.set(`sizes.${one}`, 'countWrong');
  for (const [one, fault] of limitFaults(model.limits)) faults.set(`limits.${one}`, fault);
  return faults;
}

function limitFaults(limits: Amounts): (readonly [string, Fault])[] {
  return filled(limits).flatMap(([name, text]): (readonly [string, Fault])[] => {
    if (name === 'size') return /^\d{1,5}x\d{1,5}$/.test(text) ? [] : [[name, 'sizeWrong']];
    return /^[1-9]\d{0,6}$/.test(text) ? [] : [[name, 'countWrong']];
  });
}

/** The members of the entry; a model without a price has no member `price`. */
export function entryOf(model: NewModel): FormMap {
  const { kind, targets } = model;
  const only = targets.length === 1 ? targets[0] : undefined;
  const members: readonly (readonly [string, FormValue])[] = [
    ['owned_by', model.owner.trim() || targets[0]!.provider],
    ['display_name', model.displayName.trim() || undefined],
    ['kind', kind === 'chat' ? undefined : kind],
    ['targets', targets.map((target) => targetOf(target, only === undefined))],
    ...filled(model.sizes),
    ['limits', mapOf(filled(model.limits))],
    ['price', mapOf(filled(model.price))],
    // What the only provider asks is what the model costs.
    ['cost', only === undefined ? undefined : mapOf(filled(only.cost))],
  ];
  return mapOf(members)!;
}

function targetOf({ provider, model, protocols, cost }: NewTarget, withCost: boolean): string | FormMap {
  const name = model.trim();
  const own = withCost ? mapOf(filled(cost)) : undefined;
  if (protocols.length === 0 && own === undefined) return name === '' ? provider : `${provider}/${name}`;
  return mapOf([
    ['provider', provider],
    ['model', name || undefined],
    ['speaks', protocols.length > 1 ? protocols : protocols[0]],
    ['cost', own],
  ])!;
}

function mapOf(members: readonly (readonly [string, FormValue])[]): FormMap | undefined {
  const written = members.filter((member): member is [string, NonNullable<FormValue>] => member[1] !== undefined);
  return written.length === 0 ? undefined : new Map(written);
}

function filled(amounts: Amounts): [string, string][] {
  return [...amounts].map(([name, text]): [string, string] => [name, text.trim()]).filter(([, text]) => text !== '');
}
