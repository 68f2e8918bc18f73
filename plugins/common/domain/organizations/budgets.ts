/** Budgets: what some calls of an account may spend in a period. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Money } from '../money.ts';

export const budgetKinds = ['account', 'project', 'person', 'key', 'models', 'tag'] as const;
export type BudgetOf = (typeof budgetKinds)[number];
export const budgetPeriods = ['day', 'week', 'month', 'quarter', 'year', 'ever'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Which calls count together, and for how long. It never changes: a budget that counts others is another one. */
export interface BudgetCounted {
  readonly of: BudgetOf;
  /** Id of the one project, person or key that it is for; undefined: each has such a budget. */
  readonly subject?: string | undefined;
  /** Ids of models, with * for any part; undefined: calls of all. */
  readonly models?: readonly string[] | undefined;
  /** NAME=VALUE, as calls have it; undefined: calls with any, or none. */
  readonly tag?: string | undefined;
  /** Who has such a budget of models; undefined: the account. */
  readonly by?: 'account' | 'person' | undefined;
  readonly every: BudgetPeriod;
  /** The time zone in which periods begin; undefined: the account's. */
  readonly zone?: string | undefined;
  /** The first day of some period, as 2026-04-06; undefined: periods of the calendar. */
  readonly first?: string | undefined;
}

export interface BudgetTerms extends BudgetCounted {
  readonly amount: Money;
  /** false: calls go on when it is passed; undefined: they are refused. */
  readonly hard?: boolean | undefined;
  /** Id of the model that takes calls which do not fit in it, where it can; undefined: they are refused. */
  readonly instead?: string | undefined;
  /** Shares of it from 0 to 1 at which a notice is sent, once in each period; undefined: none, or at 1 where calls go on. */
  readonly warn?: readonly number[] | undefined;
}

/** The shares at which a notice is sent. */
export const warnsOf = ({ hard, warn }: Pick<BudgetTerms, 'hard' | 'warn'>): readonly number[] =>
  warn ?? (hard === false ? [1] : []);

/** Who has set a budget: an operator, or the people of the account. */
export type BudgetAuthority = 'operator' | 'owner';

/** A budget as it is in force. */
export interface BudgetRule extends BudgetTerms {
  /** Absent: it is one of the settings. */
  readonly id?: string | undefined;
  readonly authority?: BudgetAuthority | undefined;
  /** The name of the project that one of the settings is for. */
  readonly name?: string | undefined;
}

/** What is spent of a budget in its present period, for one that has it. */
export interface BudgetState {
  /** Names it among those of its account, for additions. */
  readonly scope: string;
  /** Id of the project, person or key; undefined: the account. */
  readonly subject: string | undefined;
  /** With what was added for this period. */
  readonly ceiling: Money;
  /** Charged, and held for orders that are not finished. */
  readonly spent: Money;
  readonly from: number;
  /** Undefined: the period does not end. */
  readonly until: number | undefined;
}

export interface BudgetView extends BudgetRule {
  readonly changedAt: number | undefined;
  /** One for the account or the one subject; of a budget for each, those who have spent most, at most 20. */
  readonly states: readonly BudgetState[];
}

export interface BudgetAddition {
  readonly scope: string;
  readonly amount: Money;
  readonly reason: string;
}

/** A state that has passed a share at which a notice is sent. */
export interface BudgetWarning extends BudgetState {
  readonly rule: BudgetRule;
  readonly share: number;
  /** What the project is called. */
  readonly name: string | undefined;
}

/** Changes are in force in all processes within a second. */
export interface BudgetAdmin {
  /** Those of the settings too. At most 100 of each authority. */
  list(accountId: string): Promise<readonly BudgetView[]>;
  /** Makes a budget, or changes the one of this authority that counts the same calls for the same periods. */
  set(accountId: string, authority: BudgetAuthority, terms: BudgetTerms): Promise<BudgetView>;
  /**
   * Lets more be spent of one state that is listed in its present period alone. Owners add to their own budgets, operators to those of operators and
   * settings. Throws `not_found`, and `conflict` where there are too many.
   */
  add(accountId: string, authority: BudgetAuthority, addition: BudgetAddition): Promise<BudgetView>;
  /** The account's own time zone; undefined: it has none, and UTC stands for it. */
  zone(accountId: string): Promise<string | undefined>;
  /**
   * From here on periods of budgets that have no zone of their own, and of caps of keys, are those of this zone: the present one begins where it
   * would have begun, with what was spent and added since. So are months of statements from the next one on. Throws invalid_request.
   */
  setZone(accountId: string, zone: string | undefined): Promise<void>;
  /** What has passed a share at which a notice is sent, by account. */
  warnings(accountIds: readonly string[]): Promise<ReadonlyMap<string, readonly BudgetWarning[]>>;
  /** Ends one of this authority. Throws `not_found`. */
  end(accountId: string, authority: BudgetAuthority, id: string): Promise<BudgetRule>;
}

/** Provided by `billing`. */
export const budgetAdmin = defineService<BudgetAdmin>('budget admin');
