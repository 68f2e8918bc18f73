/** Prices as people read them: the amount that is charged, and for what. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PriceLine, PriceSheet } from '../api/types.ts';
import { exactMoneyText } from './format.ts';

/** What every call is charged by: tokens in and out, or pieces. Tools are charged only where they are used. */
function mainLines({ lines }: Pick<PriceSheet, 'lines'>, kind: string): readonly PriceLine[] {
  const among = (...classes: string[]) => lines.filter((line) => classes.includes(line.class));
  const tokens = among('input', 'output');
  const pieces = among('image', 'second', 'request');
  if (kind === 'chat' || pieces.every((line) => line.class === 'request')) return [...tokens, ...among('request')];
  return pieces;
}

/** The main price with its unit, what it can be by size, and the official one where that differs. */
export function MainPrice({ sheet, kind }: { readonly sheet: PriceSheet; readonly kind: string }) {
  const { t, i18n } = useTranslation();
  const lines = mainLines(sheet, kind);
  // All digits: a price that is cut would be lower than what is charged.
  const amount = (usd: string) => exactMoneyText(usd, i18n.language);
  const text = (of: 'yours' | 'official') => {
    const tokens = lines.filter(({ per }) => per === 'million').map((line) => amount(line[of]));
    const pieces = lines
      .filter(({ per }) => per !== 'million')
      .map((line) => `${amount(line[of])} ${t(`shell.per.${line.per}`)}`);
    const sums = tokens.length === 0 ? pieces : [`${tokens.join(' / ')} ${t('shell.per.million')}`, ...pieces];
    return sums.join(' + ');
  };
  const ranges = lines.flatMap(({ range }) => (range === null ? [] : [range]));
  return (
    <div>
      <span className="number">{text('yours')}</span>
      {ranges.map(({ least, most }) => (
        <Text key={least} fz="xs" c="dimmed">
          {t('shell.per.range', { least: amount(least), most: amount(most) })}
        </Text>
      ))}
      {text('yours') !== text('official') && (
        <Text fz="xs" c="dimmed">
          {t('client.models.official', { price: text('official') })}
        </Text>
      )}
    </div>
  );
}
