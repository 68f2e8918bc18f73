/** Finds the scopes of a call: the cap of its key and the budgets that it lies in, the narrowest first. */
import { createHash } from 'node:crypto';
import type { BudgetOf, BudgetRule } from '../../common/domain/organizations/budgets.ts';
import {
  type Addition,
  countsModel,
  type Identity,
  keyOf,
  type Origin,
  type Scope,
  type Spending,
  scopeOfKey,
} from './scope.ts';

/** What a call is for, with other models that may serve it. */
export interface Subject {
  readonly model: string;
  readonly others?: readonly { readonly model: string }[] | undefined;
}

/** What an account has of its own: budgets beside those of the settings, what was added to any, by scope, and its time zone. */
export interface OwnRules {
  readonly rules: readonly BudgetRule[];
  readonly additions: ReadonlyMap<string, readonly Addition[]>;
  /** Where its periods begin; undefined: UTC. */
  readonly zone?: string | undefined;
}

interface Known extends Identity {
  readonly model: string;
  readonly scopes: readonly Scope[];
}

const mostKnown = 10_000;
const none: readonly Scope[] = [];
/** A longer name of a scope is shortened: it is part of a key in the database. */
const longestId = 400;

/** Narrowest first: what refuses a call says so in this order. */
const order: readonly BudgetOf[] = ['key', 'models', 'person', 'tag', 'project', 'account'];

const sorted = (rules: readonly BudgetRule[]): readonly BudgetRule[] =>
  rules.toSorted((left, right) => order.indexOf(left.of) - order.indexOf(right.of));

export class BudgetBook {
  #settings: readonly BudgetRule[];
  /** By account: its own rules with those of the settings. */
  readonly #own = new Map<string, OwnRules>();
  #someOwn = false;
  /** By key: its next call is nearly always for the same model. */
  readonly #known = new Map<string, Known>();
  isEmpty: boolean;
  /** Another number: calls that run may lie in other scopes than those that they were admitted in. */
  revision = 0;

  constructor(settings: readonly BudgetRule[]) {
    this.#settings = sorted(settings);
    this.isEmpty = settings.length === 0;
  }

  get settings(): readonly BudgetRule[] {
    return this.#settings;
  }

  /** Takes changed settings, for calls that begin from now on. */
  change(settings: readonly BudgetRule[]): void {
    this.#settings = sorted(settings);
    this.revision += 1;
    for (const [accountId, { rules, ...own }] of this.#own)
      this.#own.set(accountId, { rules: this.#with(rules.filter(({ id }) => id !== undefined)), ...own });
    this.#known.clear();
    this.isEmpty = settings.length === 0 && !this.#someOwn;
  }

  /** Whether any account has budgets of its own, which are put here before its calls are looked up. */
  expect(someOwn: boolean): void {
    this.#someOwn = someOwn;
    this.isEmpty = this.#settings.length === 0 && !someOwn;
  }

  put(accountId: string, { rules, ...own }: OwnRules): void {
    this.#own.set(accountId, { rules: this.#with(rules), ...own });
    this.#known.clear();
    this.revision += 1;
  }

  forget(accountId: string): void {
    this.#own.delete(accountId);
    this.#known.clear();
  }

  /** The scopes of a call; where another model may serve it, those of that too. */
  scopesOf(identity: Identity, { model, others }: Subject): readonly Scope[] {
    if (others !== undefined && others.length > 0)
      return this.#find({ identity, models: [model, ...others.map((other) => other.model)] });
    const { keyId, accountId, cap, attribution, project, tags } = identity;
    const known = this.#known.get(keyId);
    if (
      known?.model === model &&
      known.accountId === accountId &&
      known.cap === cap &&
      known.attribution === attribution &&
      known.project === project &&
      known.tags === tags
    )
      return known.scopes;
    if (this.#known.size >= mostKnown) this.#known.clear();
    const kept = { accountId, keyId, cap, attribution, project, tags };
    const scopes = this.#find({ identity: kept, models: [model] });
    this.#known.set(keyId, { ...kept, model, scopes });
    return scopes;
  }

  /** The scope as it is now; undefined: it has no ceiling any more. */
  revised(scope: Scope): Scope | undefined {
    if (scope.origin === undefined) {
      const { spending, calendar } = scope;
      return { ...scope, calendar: { ...calendar, zone: this.#own.get(spending.accountId)?.zone } };
    }
    return this.#find(scope.origin).find(({ id }) => id === scope.id);
  }

  #with(own: readonly BudgetRule[]): readonly BudgetRule[] {
    return sorted([...own, ...this.#settings]);
  }

  #find(origin: Origin): readonly Scope[] {
    const { accountId, keyId, cap } = origin.identity;
    const own = this.#own.get(accountId);
    /** Where several count the same calls for the same periods, the one that is most for them. */
    const found = new Map<string, readonly [rank: number, scope: Scope, isHard: boolean]>();
    for (const rule of own?.rules ?? this.#settings) {
      const given = scopeOf(rule, origin);
      const rank = rankOf(rule);
      if (given === undefined || rank < (found.get(given.id)?.[0] ?? 0)) continue;
      const additions = own?.additions.get(given.id);
      const calendar = { ...given.calendar, zone: rule.zone ?? own?.zone };
      const scope = { ...given, calendar, ...(additions === undefined ? {} : { additions }) };
      found.set(given.id, [rank, scope, rule.hard !== false]);
    }
    const scopes = [...found.values()].flatMap(([, scope, isHard]) => (isHard ? [scope] : []));
    if (cap !== undefined) scopes.unshift(scopeOfKey(accountId, keyId, cap, own?.zone));
    return scopes.length === 0 ? none : scopes;
  }
}

/** One for a single project, person or key stands before one for each; an account's own before one of the settings. */
function rankOf({ name, subject, id }: BudgetRule): number {
  return (name === undefined && subject === undefined ? 0 : 2) + (id === undefined ? 0 : 1);
}

function scopeOf(rule: BudgetRule, origin: Origin): Scope | undefined {
  const { identity } = origin;
  const { accountId, keyId, attribution: { person, project } = {} } = identity;
  const isFor = (subject: string | undefined) => subject !== undefined && (rule.subject ?? subject) === subject;
  const make = (spending: Spending, name: string) => scopeIn(rule, spending, name, origin);
  switch (rule.of) {
    case 'account':
      return make({ accountId }, 'of this account');
    case 'key':
      return isFor(keyId) ? make({ accountId, key: keyId }, 'of this key') : undefined;
    case 'person':
      return isFor(person) ? make({ accountId, person }, 'of this person') : undefined;
    case 'project':
      if (!isFor(project) || (rule.name !== undefined && rule.name !== identity.project)) return undefined;
      return make({ accountId, project }, `of the project ${identity.project ?? project}`);
    case 'tag':
      return hasTag(identity, rule.tag) ? make({ accountId, tag: rule.tag }, `of the tag ${rule.tag}`) : undefined;
    case 'models':
      return modelsScope(rule, origin);
  }
}

function hasTag({ tags }: Identity, tag = ''): boolean {
  const [name = '', value] = tag.split('=', 2);
  return value !== undefined && tags?.get(name) === value;
}

function modelsScope(rule: BudgetRule, origin: Origin): Scope | undefined {
  const { accountId, attribution: { person } = {} } = origin.identity;
  const { by, models = [] } = rule;
  const isByPerson = by === 'person';
  const spending: Spending = { accountId, ...(isByPerson ? { person } : {}), models };
  if (isByPerson && person === undefined) return undefined;
  if (!origin.models.some((model) => countsModel(spending, model))) return undefined;
  return scopeIn(rule, spending, `of ${models.join(', ')}${isByPerson ? ' for this person' : ''}`, origin);
}

/** The account's zone has the name UTC here, which is what it is unless it was set: the scope stays the same when it changes. */
function periodsOf({ every, zone, first = '' }: BudgetRule): string {
  const named = zone === undefined ? 'UTC' : zone === 'UTC' ? 'Etc/UTC' : zone;
  return `${every}:${named}:${first}`;
}

/** Names the calls that are counted, and the periods. */
export function idOf(
  rule: BudgetRule,
  { key, person = '', project = '', models = [], tag }: Omit<Spending, 'accountId'>,
): string {
  const begin = rule.authority === 'owner' ? 'own:' : '';
  const one = [key, tag].filter((part) => part !== undefined);
  const parts = [rule.of, person, project, models.join(','), ...one, periodsOf(rule)];
  const id = `${begin}${parts.join(':')}`;
  return id.length <= longestId ? id : `${begin}${rule.of}:${createHash('sha256').update(id).digest('hex')}`;
}

function scopeIn(rule: BudgetRule, spending: Spending, name: string, origin: Origin): Scope {
  const id = idOf(rule, spending);
  const { amount, every, zone, first, instead } = rule;
  return {
    id,
    key: keyOf(spending.accountId, id),
    spending,
    amount,
    calendar: { every, zone, first },
    name,
    origin,
    instead,
  };
}
