/** Administration of budgets: what is in force for an account, what is spent of it, and changes with their checks. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { zoneOf } from '../../../core/tools/time-zone.ts';
import { type Database, isUuid } from '../../common/domain/database.ts';
import { money } from '../../common/domain/money.ts';
import {
  type BudgetAddition,
  type BudgetAdmin,
  type BudgetAuthority,
  type BudgetRule,
  type BudgetState,
  type BudgetView,
  type BudgetWarning,
  warnsOf,
} from '../../common/domain/organizations/budgets.ts';
import type { ProjectAdmin } from '../../common/domain/organizations/projects.ts';
import { type BudgetBook, idOf, type OwnRules } from './book.ts';
import { periodOf } from './calendar.ts';
import { type BudgetRows, mostBudgets, type StoredBudget } from './rows.ts';
import { ceilingIn, type Spending } from './scope.ts';
import { mostAmount, validBudget } from './settings.ts';
import { mostSpent, spentOf } from './store.ts';

export interface BudgetAdminTools {
  readonly database: Database;
  readonly rows: BudgetRows;
  readonly book: BudgetBook;
  readonly clock: Clock;
  readonly projects: () => Pick<ProjectAdmin, 'named' | 'namesOf'> | undefined;
}

/** Subjects that are shown of a budget for each. */
const mostShown = 20;
const mostNames = 500;

export function openBudgetAdmin(tools: BudgetAdminTools): BudgetAdmin {
  const { rows, book } = tools;
  const list = async (accountId: string) => {
    const own = await rows.read(accountId);
    const views: BudgetView[] = [];
    for (const rule of [...book.settings, ...own.rules]) {
      const { changedAt } = rule as Partial<StoredBudget>;
      views.push({ ...rule, changedAt, states: await statesOf(tools, accountId, rule, own) });
    }
    return views;
  };
  const findState = async (accountId: string, authority: BudgetAuthority, scope: string) => {
    for (const view of await list(accountId)) {
      const state = view.states.find((one) => one.scope === scope);
      if (state !== undefined && (view.authority ?? 'operator') === authority) return { view, state };
    }
    return undefined;
  };
  return {
    list,
    async set(accountId, authority, terms) {
      const stored = await rows.set(accountId, authority, validBudget(terms));
      if (stored === undefined)
        throw new GatewayError('conflict', `There are ${mostBudgets} budgets already: end one first.`, { field: 'of' });
      return { ...stored, states: await statesOf(tools, accountId, stored, await rows.read(accountId)) };
    },
    async add(accountId, authority, addition) {
      const { reason, amount, scope } = validAddition(addition);
      const { view, state } = (await findState(accountId, authority, scope)) ?? {};
      if (view === undefined || state === undefined)
        throw new GatewayError('not_found', 'There is no such budget.', { field: 'scope' });
      const { from, until } = state;
      if (!(await rows.add(accountId, { scope, amount, reason, from, until })))
        throw new GatewayError('conflict', 'There are too many additions already.', { field: 'scope' });
      const added = (await findState(accountId, authority, scope))!;
      return { ...view, states: [added.state] };
    },
    zone: async (accountId) => (await rows.read(accountId)).zone,
    async setZone(accountId, zone) {
      if (zone !== undefined && zoneOf(zone) === undefined)
        throw invalid('The zone is one by its IANA name, such as Europe/Berlin.', 'zone');
      await rows.setZone(accountId, zone);
      // The month of a credit line may be another one now.
      await tools.database.announce('account', accountId);
    },
    warnings: async (accountIds) => {
      const isForAll = book.settings.some((rule) => warnsOf(rule).length > 0);
      const warned = isForAll ? accountIds : await rows.warned(accountIds);
      const found = new Map<string, readonly BudgetWarning[]>();
      for (const accountId of warned) found.set(accountId, await warningsOfAccount(tools, accountId));
      return found;
    },
    async end(accountId, authority, id) {
      const ended = isUuid(id) ? await rows.end(accountId, authority, id) : undefined;
      if (ended === undefined) throw new GatewayError('not_found', 'There is no such budget.', { field: 'id' });
      return ended;
    },
  };
}

const longestReason = 500;

function validAddition(addition: BudgetAddition): BudgetAddition {
  const { amount, reason } = addition;
  if (reason.trim() === '' || reason.length > longestReason)
    throw invalid(`The reason has 1 to ${longestReason} characters.`, 'reason');
  if (amount <= 0n || amount > mostAmount) throw invalid('The amount must be above zero.', 'amount');
  return addition;
}

/** Compared in thousandths, exactly. */
const isPassed = ({ spent, ceiling }: BudgetState, share: number): boolean =>
  spent > 0n && spent * 1_000n >= ceiling * BigInt(Math.round(share * 1_000));

async function warningsOfAccount(tools: BudgetAdminTools, accountId: string): Promise<BudgetWarning[]> {
  const { rows, book, projects } = tools;
  const own = await rows.read(accountId);
  const found: Omit<BudgetWarning, 'name'>[] = [];
  for (const rule of [...book.settings, ...own.rules]) {
    const shares = warnsOf(rule);
    for (const state of shares.length === 0 ? [] : await statesOf(tools, accountId, rule, own))
      for (const share of shares) if (isPassed(state, share)) found.push({ ...state, rule, share });
  }
  const ids = found.flatMap(({ rule, subject }) => (rule.of === 'project' && subject !== undefined ? [subject] : []));
  const names =
    ids.length === 0 ? undefined : await projects()?.namesOf(accountId, [...new Set(ids)].slice(0, mostNames));
  return found.map((one) => ({ ...one, name: names?.get(one.subject ?? '') }));
}

async function statesOf(
  { database: { orm, schema }, clock, projects }: BudgetAdminTools,
  accountId: string,
  rule: BudgetRule,
  { additions, zone }: Pick<OwnRules, 'additions' | 'zone'>,
): Promise<readonly BudgetState[]> {
  const period = periodOf({ ...rule, zone: rule.zone ?? zone }, clock.now());
  const { start, end } = period;
  const state = (counted: Omit<Spending, 'accountId'>, spent: bigint): BudgetState => ({
    scope: idOf(rule, counted),
    subject: counted.key ?? counted.person ?? counted.project,
    ceiling: ceilingIn({ amount: rule.amount, additions: additions.get(idOf(rule, counted)) }, period),
    spent: money(spent),
    from: start,
    until: Number.isFinite(end) ? end : undefined,
  });
  const { models, tag } = rule;
  const by = dimensionOf(rule);
  const subject = rule.name === undefined ? rule.subject : (await projects()?.named(accountId, rule.name))?.id;
  if (by === undefined || subject !== undefined) {
    const counted = { models, tag, ...(by === undefined ? {} : { [by]: subject }) };
    const { spent, ordered } = await spentOf(orm, schema, { accountId, ...counted }, start);
    return [state(counted, spent + ordered)];
  }
  if (rule.name !== undefined || by === 'key') return [];
  const most = await mostSpent(orm, schema, { spending: { accountId, models }, from: start, by }, mostShown);
  return most.map(([found, spent]) => state({ models, [by]: found }, spent));
}

/** What each has one of; undefined: the account. */
function dimensionOf({ of, by }: BudgetRule): 'person' | 'project' | 'key' | undefined {
  if (of === 'models') return by === 'person' ? 'person' : undefined;
  return of === 'account' || of === 'tag' ? undefined : of;
}
