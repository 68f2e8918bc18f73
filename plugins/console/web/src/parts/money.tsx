/** An amount of money: sensible digits, the exact one on hover. */
import { Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Usd } from '../api/types.ts';
import { moneyText } from './format.ts';

interface MoneyProps {
  readonly of: Usd | undefined | null;
  /** Colours what is negative, and puts a + before what is not. */
  readonly signed?: boolean;
}

export function Money({ of, signed = false }: MoneyProps) {
  const { i18n } = useTranslation();
  if (of === undefined || of === null) return <Absent />;
  const short = moneyText(of, i18n.language);
  const negative = of.startsWith('-');
  const text = (
    <span className="number" data-negative={(signed && negative) || undefined}>
      {signed && !negative ? `+${short}` : short}
    </span>
  );
  const exact = `${negative ? '−' : ''}$${of.replace('-', '')}`;
  if (exact === short) return text;
  return <Tooltip label={exact}>{text}</Tooltip>;
}

const Absent = () => (
  <Text span c="dimmed" inherit>
    –
  </Text>
);
