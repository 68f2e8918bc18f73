/** Prices as people read them: the amount that is charged, and for what. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PriceLine, PriceSheet } from '../api/types.ts';
import { exactMoneyText } from './format.ts';

/** What every call is charged by: tokens in and out, or pieces. Tools are charged only where they are used. */
function mainLines({ lines }: Pick<PriceSheet, 'lines'>, kind: string): readonly PriceLine[] {
  const among = (...classes: string[]) => lines.filter((line) => classes.includes(line.class));
  const tokens = among(...(tokensOf.get(kind) ?? ['input', 'output']));
  const pieces = among('image', 'second', 'request', 'character', 'audio', 'search');
  if (kind === 'chat' || pieces.every((line) => line.class === 'request')) return [...tokens, ...among('request')];
  return pieces;
}

/** What models are mainly charged by that hear or speak. */
const tokensOf = new Map([
  ['speech', ['input', 'output_audio']],
  ['transcription', ['input_audio', 'output']],
]);

/** The main price with its unit, what it can be by size, and the official one where that differs. */
export function MainPrice({ sheet, kind }: { readonly sheet: Pick<PriceSheet, 'lines'>; readonly kind: string }) {
  const { t, i18n } = useTranslation();
  const lines = mainLines(sheet, kind);
  // All digits: a price that is cut would be lower than the charge.
  const amount = (usd: string) => exactMoneyText(usd, i18n.language);
  const text = (of: 'yours' | 'official') => {
    if (lines.length > 0 && lines.every((line) => isZero(line[of]) && line.range === null)) return t('shell.per.free');
    const tokens = lines.filter(({ per }) => per === 'million').map((line) => amount(line[of]));
    const pieces = lines
      .filter(({ per }) => per !== 'million')
      .map((line) => `${amount(line[of])} ${t(`shell.per.${line.per}`)}`);
    const sums = tokens.length === 0 ? pieces : [`${tokens.join(' / ')} ${t('shell.per.million')}`, ...pieces];
    return sums.join(' + ');
  };
  const ranges = lines.flatMap(({ range }) => (range === null ? [] : [range]));
  return (
    <div className="main-price">
      <span className="number">{text('yours')}</span>{' '}
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

const isZero = (usd: string) => !/[1-9]/.test(usd);

/** The price of cached input. */
export function CachedPrice({ sheet }: { readonly sheet: Pick<PriceSheet, 'lines'> | null }) {
  const { i18n } = useTranslation();
  const cached = sheet?.lines.find((line) => line.class === 'cache_read');
  return <span className="number">{cached === undefined ? '–' : exactMoneyText(cached.yours, i18n.language)}</span>;
}

/** For sorting alone: what a model's output costs, or one piece of it. Those without a price come last. */
export function mainAmount({
  prices,
  kind,
}: {
  readonly prices: Pick<PriceSheet, 'lines'> | null;
  readonly kind: string;
}): number {
  const last = prices === null ? undefined : mainLines(prices, kind).at(-1);
  return last === undefined ? Number.POSITIVE_INFINITY : Number(last.yours);
}
