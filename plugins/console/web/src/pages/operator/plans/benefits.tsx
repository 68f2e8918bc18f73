/** What a plan brings, line by line. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { moneyText } from '../../../parts/format.ts';
import type { Plan } from '../types.ts';
import { limitLines } from './limit-lines.ts';

const every = { day: 'perDay', week: 'perWeek', month: 'perMonth' } as const;

export function useBenefits(plan: Plan): ReactNode[] {
  const { t, i18n } = useTranslation();
  const { grant, windows, models, multiplier, lastsDays, renew } = plan;
  const money = (amount: string) => moneyText(amount, i18n.language);
  const lines: string[] = [];
  if (grant !== null) {
    const words = { amount: money(grant.amount), every: t(`operator.sales.plans.${every[grant.every]}`) };
    lines.push(t('operator.sales.plans.brings', words));
  }
  for (const name of ['5h', 'day', 'week', 'month'] as const) {
    const amount = windows[name];
    if (amount === null) continue;
    const window = t(`operator.sales.plans.windows.${name}`);
    lines.push(t('operator.sales.plans.window', { amount: money(amount), window }));
  }
  lines.push(...limitLines(plan, t, i18n.language));
  if (multiplier !== null && multiplier !== '1') lines.push(t('operator.sales.plans.ratio', { ratio: multiplier }));
  lines.push(models === null ? t('operator.sales.plans.allModels') : models.join(', '));
  if (lastsDays !== null) lines.push(t('operator.sales.plans.lasts', { days: lastsDays }));
  if (renew) lines.push(t('operator.sales.plans.renews'));
  return lines;
}
