/** Columns that many tables have: a text, a moment, an amount, a number; and one with a button. */
import { Button, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Moment, Usd } from '../api/types.ts';
import { countText, durationText } from './format.ts';
import { Money } from './money.tsx';
import type { Cell, Column } from './rows-table.tsx';
import { Time } from './time.tsx';

type KeyOf<Row, Value> = { [Key in keyof Row]: Row[Key] extends Value ? Key : never }[keyof Row] & string;
type More<Row> = Partial<Column<Row>>;
const minus = '-';

/** The value as it is. */
export function textColumn<Row, Key extends KeyOf<Row, Cell>>(key: Key, title: string, more: More<Row> = {}) {
  const plain = (row: Row) => row[key] as Cell;
  return { key, title, cell: (row: Row) => plain(row) ?? '–', plain, ...more } satisfies Column<Row>;
}

interface Timed<Row> extends More<Row> {
  readonly relative?: boolean;
  readonly absent?: string;
}

export function timeColumn<Row, Key extends KeyOf<Row, Moment | null>>(key: Key, title: string, how: Timed<Row> = {}) {
  const { relative, absent, ...more } = how;
  const plain = (row: Row) => row[key] as Moment | null;
  const cell = (row: Row) => <Time at={plain(row)} relative={relative} absent={absent} />;
  return { key, title, cell, plain, ...more } satisfies Column<Row>;
}

/** `signed` colours amounts below zero. */
export function moneyColumn<Row>(key: string, title: string, of: (row: Row) => Usd | null | undefined, signed = false) {
  const cell = (row: Row) => <Money of={of(row)} signed={signed && of(row)?.startsWith(minus) === true} />;
  return { key, title, right: true, cell, plain: of } satisfies Column<Row>;
}

/** A value that is known only where the own cost of every call is. */
export function knownColumn<Key extends 'ownCost' | 'margin', Row extends Record<Key | 'cost', Usd | null>>(
  key: Key,
  title: string,
  unknown: string,
): Column<Row> {
  const cell = (row: Row) => {
    if (row[key] === null && row.cost !== null) return <Dimmed>{unknown}</Dimmed>;
    return <Money of={row[key]} signed={row[key]?.startsWith(minus) === true} />;
  };
  return { key, title, right: true, cell, plain: (row) => row[key] };
}

const Dimmed = ({ children }: { readonly children: string }) => (
  <Text span inherit c="dimmed">
    {children}
  </Text>
);

export function useCountColumn<Row, Key extends KeyOf<Row, number>>(key: Key, title: string) {
  const { i18n } = useTranslation();
  const plain = (row: Row) => row[key] as number;
  return { key, title, right: true, cell: (row: Row) => countText(plain(row), i18n.language), plain };
}

export function durationColumn<Row>(
  key: string,
  title: string,
  of: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> {
  const cell = (row: Row) => <span className="number">{durationText(of(row))}</span>;
  return { key, title, right: true, cell, plain: of, ...more };
}

/** The beginning of a secret. */
export function prefixColumn<Row extends { readonly prefix: string }>(title: string): Column<Row> {
  return {
    key: 'prefix',
    title,
    cell: ({ prefix }) => <span className="mono">{prefix}…</span>,
    plain: (r) => r.prefix,
  };
}

/** A button in each row; `shown` says for which. */
export function useDangerColumn<Row>(
  action: string,
  onClick: (row: Row) => void,
  shown: (row: Row) => boolean = () => true,
): Column<Row> {
  const { t } = useTranslation();
  const cell = (row: Row) =>
    shown(row) && (
      <Button size="compact-xs" variant="subtle" color="red" onClick={() => onClick(row)}>
        {action}
      </Button>
    );
  return { key: 'actions', title: t('shell.word.actions'), right: true, cell };
}
