/** Which checks apply to a call: the policies of all entries that match, added up. Pure. */
import { isLike } from '../../core/tools/wildcard.ts';
import type { Caller } from '../common/domain/accounts.ts';
import type { Application, GuardrailsConfig } from './config.ts';
import type { OpenCheck, OpenChecks } from './open-checks.ts';

export interface Asked {
  readonly caller: Caller | undefined;
  /** Names of the model; empty: not known, so that each entry about models matches. */
  readonly models: readonly string[];
}

export interface Applied {
  readonly checks: readonly OpenCheck[];
  /** Operations that cannot give their texts are made unchecked: each of the policies says so. */
  readonly allowsUncovered: boolean;
  /** Names of the checks of which a refusal beside the call charges what the vendor has done. */
  readonly charging: ReadonlySet<string>;
}

export class Policies {
  readonly #section: GuardrailsConfig;
  readonly #open: OpenChecks;
  /** By the numbers of the entries that match. */
  readonly #known = new Map<string, Applied | undefined>();

  constructor(section: GuardrailsConfig, open: OpenChecks) {
    this.#section = section;
    this.#open = open;
  }

  get isEmpty(): boolean {
    return this.#section.apply.length === 0;
  }

  /** undefined: no check applies. */
  of(asked: Asked): Applied | undefined {
    let key = '';
    for (const [number, entry] of this.#section.apply.entries()) if (matches(entry, asked)) key += `${number},`;
    if (!this.#known.has(key)) this.#known.set(key, this.#of(key.split(',').filter((number) => number !== '')));
    return this.#known.get(key);
  }

  /** All policies that are written. */
  get names(): readonly string[] {
    return Object.keys(this.#section.policies);
  }

  /** The checks of a policy; undefined: there is none of this name. */
  named(name: string): readonly OpenCheck[] | undefined {
    const { policies } = this.#section;
    return Object.hasOwn(policies, name) ? this.#checksOf([name]) : undefined;
  }

  #of(numbers: readonly string[]): Applied | undefined {
    const names = numbers.map((number) => this.#section.apply[Number(number)]!.policy);
    const checks = this.#checksOf(names);
    if (checks.length === 0) return undefined;
    const allowsUncovered = names.every((name) => this.#section.policies[name]?.uncovered === 'allow');
    const used = names.flatMap((name) => this.#section.policies[name] ?? []);
    const charging = new Set(used.filter(({ charge }) => charge === 'attempt').flatMap((policy) => policy.checks));
    return { checks, allowsUncovered, charging };
  }

  #checksOf(policies: readonly string[]): readonly OpenCheck[] {
    const names = new Set(policies.flatMap((policy) => this.#section.policies[policy]?.checks ?? []));
    return [...names].flatMap((name) => this.#open.get(name) ?? []);
  }
}

function matches({ plans, projects, accounts, keys, models, tags }: Application, asked: Asked): boolean {
  const { caller } = asked;
  const has = (list: readonly string[] | undefined, value: string | undefined) =>
    list === undefined || (value !== undefined && list.includes(value));
  if (!has(plans, caller?.plan) || !has(projects, caller?.project)) return false;
  if (!has(accounts, caller?.accountId) || !has(keys, caller?.keyId)) return false;
  if (tags !== undefined && Object.entries(tags).some(([name, value]) => caller?.tags?.get(name) !== value))
    return false;
  if (models === undefined || asked.models.length === 0) return true;
  return models.some((pattern) => asked.models.some((model) => isLike(pattern, model)));
}

/** Faults of a section beside those of its checks: names that stand for nothing. */
export function unknownNames({ checks, policies, apply }: GuardrailsConfig) {
  const faults: { readonly path: readonly (string | number)[]; readonly message: string }[] = [];
  for (const [name, policy] of Object.entries(policies))
    for (const check of policy.checks)
      if (!Object.hasOwn(checks, check))
        faults.push({
          path: ['policies', name],
          message: `names the check "${check}", which \`checks\` does not have`,
        });
  for (const [index, { policy }] of apply.entries())
    if (!Object.hasOwn(policies, policy))
      faults.push({
        path: ['apply', index, 'policy'],
        message: `names the policy "${policy}", which \`policies\` does not have`,
      });
  return faults;
}
