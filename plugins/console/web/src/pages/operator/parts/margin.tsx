/** The margin as pages show it: its figure with its shares, and the columns of a table. */
import { useTranslation } from 'react-i18next';
import { knownColumn, moneyColumn } from '../../../parts/columns.tsx';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { Stat } from '../../../parts/stat.tsx';
import { type MarginSums, sharesOf } from '../sums/margin.ts';
import { isNegative, isNothing, usdChange } from '../sums/usd.ts';

interface MarginStatProps {
  readonly sums: MarginSums & { readonly ownCostUnknown: number | null };
  /** The same of the time before. */
  readonly before?: MarginSums | undefined;
  readonly to?: string;
  readonly search?: Readonly<Record<string, string>>;
}

export function MarginStat({ sums, before, ...link }: MarginStatProps) {
  const { t, i18n } = useTranslation();
  const { cost, margin, ownCostUnknown } = sums;
  const shares = sharesOf(sums);
  const note = () => {
    if (shares !== undefined) {
      const percent = `${shares.margin} %`;
      return ownCostUnknown
        ? t('operator.traffic.monitor.marginPart', { percent, part: `${shares.known} %` })
        : t('operator.traffic.monitor.marginHint', { percent });
    }
    if (!ownCostUnknown) return undefined;
    return t('operator.traffic.monitor.noCost', {
      count: ownCostUnknown,
      number: countText(ownCostUnknown, i18n.language),
    });
  };
  return (
    <Stat
      label={t('operator.column.margin')}
      value={margin === null && cost !== null ? t('operator.unknown') : <Money of={margin} />}
      tone={margin !== null && isNegative(margin) ? 'bad' : undefined}
      note={note()}
      change={usdChange(margin, before?.margin)}
      {...link}
    />
  );
}

/** Every part of the margin; those that are nothing in all rows are left out. */
export function useMarginColumns<Row extends MarginSums>(rows: readonly Row[]): Column<Row>[] {
  const { t } = useTranslation();
  const unknown = t('operator.unknown');
  const some = (name: 'refunded' | 'uncosted' | 'writtenOff') =>
    rows.some((row) => !isNothing(row[name] ?? '0'))
      ? [moneyColumn<Row>(name, t(`operator.column.${name}`), (row) => row[name])]
      : [];
  return [
    moneyColumn('cost', t('operator.column.cost'), ({ cost }) => cost),
    ...some('refunded'),
    ...some('uncosted'),
    knownColumn('ownCost', t('operator.column.ownCost'), unknown),
    ...some('writtenOff'),
    knownColumn('margin', t('operator.column.margin'), unknown),
  ];
}
