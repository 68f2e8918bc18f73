/** Finds the scopes of a call: the cap of its key and the budgets that it lies in, the narrowest first. */
import type { Caller } from '../../common/domain/accounts.ts';
import { countsModel, keyOf, type Scope, type Spending, scopeOfKey } from './scope.ts';
import type { Budget } from './settings.ts';

/** What a call is for, with other models that may serve it. */
export interface Subject {
  readonly model: string;
  readonly others?: readonly { readonly model: string }[] | undefined;
}

type Identity = Pick<Caller, 'accountId' | 'keyId'> & {
  readonly [Name in 'project' | 'attribution' | 'cap']?: Caller[Name] | undefined;
};

interface Known extends Identity {
  readonly model: string;
  readonly scopes: readonly Scope[];
}

const mostKnown = 10_000;
const none: readonly Scope[] = [];

/** Narrowest first: what refuses a call says so in this order. */
const order: readonly Budget['of'][] = ['models', 'person', 'project', 'account'];

export class BudgetBook {
  readonly #budgets: readonly Budget[];
  /** By key: its next call is nearly always for the same model. */
  readonly #known = new Map<string, Known>();
  readonly isEmpty: boolean;

  constructor(budgets: readonly Budget[]) {
    this.#budgets = budgets.toSorted((left, right) => order.indexOf(left.of) - order.indexOf(right.of));
    this.isEmpty = budgets.length === 0;
  }

  /** The scopes of a call; where another model may serve it, those of that too. */
  scopesOf(identity: Identity, { model, others }: Subject): readonly Scope[] {
    if (others !== undefined && others.length > 0)
      return this.#find(identity, [model, ...others.map((other) => other.model)]);
    const { keyId, accountId, cap, attribution, project } = identity;
    const known = this.#known.get(keyId);
    if (
      known?.model === model &&
      known.accountId === accountId &&
      known.cap === cap &&
      known.attribution === attribution &&
      known.project === project
    )
      return known.scopes;
    if (this.#known.size >= mostKnown) this.#known.clear();
    const scopes = this.#find(identity, [model]);
    this.#known.set(keyId, { keyId, accountId, cap, attribution, project, model, scopes });
    return scopes;
  }

  #find(identity: Identity, models: readonly string[]): readonly Scope[] {
    const { accountId, keyId, cap } = identity;
    const scopes = this.#budgets.flatMap((budget) => this.#scopeOf(budget, identity, models) ?? []);
    if (cap !== undefined) scopes.unshift(scopeOfKey(accountId, keyId, cap));
    return scopes.length === 0 ? none : scopes;
  }

  #scopeOf(budget: Budget, identity: Identity, models: readonly string[]): Scope | undefined {
    const { accountId, attribution: { person, project } = {} } = identity;
    switch (budget.of) {
      case 'account':
        return scopeOf(budget, { accountId }, 'of this account');
      case 'person':
        return person === undefined ? undefined : scopeOf(budget, { accountId, person }, 'of this person');
      case 'project':
        if (project === undefined || !this.#isForProject(budget, identity.project)) return undefined;
        return scopeOf(budget, { accountId, project }, `of the project ${identity.project ?? project}`);
      case 'models': {
        const isByPerson = budget.by === 'person';
        const { models: counted = [] } = budget;
        const spending: Spending = { accountId, ...(isByPerson ? { person } : {}), models: counted };
        if ((isByPerson && person === undefined) || !models.some((model) => countsModel(spending, model)))
          return undefined;
        const names = `of ${counted.join(', ')}`;
        return scopeOf(budget, spending, isByPerson ? `${names} for this person` : names);
      }
    }
  }

  /** One that names no project is for those without one of their own for the same periods. */
  #isForProject(budget: Budget, project: string | undefined): boolean {
    if (budget.name !== undefined) return budget.name === project;
    const isOwn = (other: Budget) =>
      other.of === 'project' && other.name === project && periodsOf(other) === periodsOf(budget);
    return project === undefined || !this.#budgets.some(isOwn);
  }
}

const periodsOf = ({ every, zone, first = '' }: Budget): string => `${every}:${zone}:${first}`;

function scopeOf(budget: Budget, spending: Spending, name: string): Scope {
  const { accountId, person = '', project = '', models = [] } = spending;
  const id = [budget.of, person, project, models.join(','), periodsOf(budget)].join(':');
  const { amount, every, zone, first } = budget;
  return { id, key: keyOf(accountId, id), spending, amount, calendar: { every, zone, first }, name };
}
