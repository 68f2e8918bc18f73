/** The English texts of budgets come with the pages that show them, and what a budget is called. */
import i18next from 'i18next';
import type { BudgetRow } from '../../api/types.ts';
import budgets from '../../texts/en/budgets.ts';

i18next.addResourceBundle('en', 'translation', { client: budgets }, true);

export type BudgetState = BudgetRow['states'][number];

/** One line of a list: a budget with one state of it, or without any. */
export interface BudgetLine {
  readonly key: string;
  readonly row: BudgetRow;
  readonly state: BudgetState | undefined;
}

/** By whom it is had, or what is counted. */
export function budgetName({ of, by, models, tag, subject }: BudgetRow, state: BudgetState | undefined): string {
  const { t } = i18next;
  const who = state?.name ?? state?.subject ?? subject;
  if (of === 'tag') return t('client.budgets.of.tag', { tag: tag ?? '' });
  if (of === 'models') {
    const named = t('client.budgets.of.models', { models: models?.join(', ') ?? '' });
    if (by !== 'person') return named;
    const one = t('client.budgets.of.one.person', { name: who ?? '' });
    return who === null ? t('client.budgets.of.byPerson', { models: named }) : `${named} · ${one}`;
  }
  return of === 'account' || who === null
    ? t(`client.budgets.of.${of}`)
    : t(`client.budgets.of.one.${of}`, { name: who });
}

export const linesOf = (rows: readonly BudgetRow[]): BudgetLine[] =>
  rows.flatMap((row, index): BudgetLine[] => {
    const key = row.id ?? `settings-${index}`;
    if (row.states.length === 0) return [{ key, row, state: undefined }];
    return row.states.map((state) => ({ key: `${key} ${state.scope}`, row, state }));
  });
