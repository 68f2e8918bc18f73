/** An amount of money: sensible digits, the exact one on hover. */
import { Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Usd } from '../api/types.ts';
import { exactMoneyText, moneyText } from './format.ts';

interface MoneyProps {
  readonly of: Usd | undefined | null;
  /** Colours negative amounts, and puts a + before others. */
  readonly signed?: boolean;
  /** All digits, where sums are checked by hand. */
  readonly exact?: boolean;
}

export function Money({ of, signed = false, exact = false }: MoneyProps) {
  const { i18n } = useTranslation();
  if (of === undefined || of === null) return <Absent />;
  const shown = exact ? exactMoneyText(of, i18n.language) : moneyText(of, i18n.language);
  const negative = of.startsWith('-');
  const text = (
    <span className="number" data-negative={(signed && negative) || undefined}>
      {signed && !negative ? `+${shown}` : shown}
    </span>
  );
  const whole = exactMoneyText(of, i18n.language);
  if (whole === shown) return text;
  return <Tooltip label={whole}>{text}</Tooltip>;
}

/** Behind a sum that it has been subtracted from. */
export function Refunded({ of }: { readonly of: Usd | null }) {
  const { t, i18n } = useTranslation();
  if (of === null || /^-?[0.]*$/.test(of)) return null;
  return <> · {t('shell.refunded', { amount: moneyText(of, i18n.language) })}</>;
}

const Absent = () => (
  <Text span c="dimmed" inherit>
    –
  </Text>
);
