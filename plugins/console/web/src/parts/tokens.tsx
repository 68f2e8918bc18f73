/** The column of what a request consumed: tokens that went in and came out, or pieces. */
import { Tooltip } from '@mantine/core';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { RequestRow } from '../api/types.ts';
import en from '../texts/en/client.ts';
import { countText } from './format.ts';
import type { Column } from './rows-table.tsx';

type WithUsage = Pick<RequestRow, 'usage'>;

export function tokensColumn<Row extends WithUsage>(title: string, more: Partial<Column<Row>> = {}): Column<Row> {
  const cell = ({ usage }: Row) => <Tokens usage={usage} />;
  return { key: 'tokens', title, right: true, cell, sort: 'tokens', ...more };
}

const inputClasses = [
  ...['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'],
  ...['cache_read_audio', 'cache_read_image'],
];
const outputClasses = ['output', 'reasoning', 'output_audio', 'output_image'];

/** Such as `1,200 tokens in, 300 out, 2 × Image`. */
export function usageWords(usage: NonNullable<RequestRow['usage']>, t: TFunction, language: string): string {
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + (usage[name] ?? 0), 0);
  const [into, out] = [sum(inputClasses), sum(outputClasses)];
  const isPiece = ([name, count]: [string, number]) =>
    count > 0 && name !== 'request' && !inputClasses.includes(name) && !outputClasses.includes(name);
  const nameOf = (name: string) =>
    Object.hasOwn(en.models.classes, name)
      ? t(`client.models.classes.${name as keyof typeof en.models.classes}`)
      : name;
  const pieces = Object.entries(usage).filter(isPiece);
  return [
    ...(into + out > 0
      ? [t('shell.ledger.tokens', { into: countText(into, language), out: countText(out, language) })]
      : []),
    ...pieces.map(([name, count]) => `${countText(count, language)} × ${nameOf(name)}`),
  ].join(', ');
}

/** Input and output tokens; classes counted in pieces are named on hover. */
function Tokens({ usage }: { readonly usage: RequestRow['usage'] }) {
  const { i18n } = useTranslation();
  if (usage === null) return <span>–</span>;
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + (usage[name] ?? 0), 0);
  const [into, out] = [sum(inputClasses), sum(outputClasses)];
  const pieces = Object.entries(usage).filter(
    ([name, count]) => count > 0 && name !== 'request' && !inputClasses.includes(name) && !outputClasses.includes(name),
  );
  const words = Object.entries(usage).map(([name, count]) => `${name} ${countText(count, i18n.language)}`);
  const short =
    into + out > 0
      ? `${countText(into, i18n.language)} → ${countText(out, i18n.language)}`
      : pieces.map(([name, count]) => `${countText(count, i18n.language)} × ${name}`).join(', ');
  return (
    <Tooltip label={words.join(' · ')} multiline maw={300}>
      <span className="number nowrap">{short === '' ? '–' : short}</span>
    </Tooltip>
  );
}
