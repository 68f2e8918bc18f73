/** Columns of how models and vendors have done: success, first byte, speed. */
import { useTranslation } from 'react-i18next';
import type { ComparedModel } from '../api/types.ts';
import { durationColumn } from './columns.tsx';
import { countText, shareText } from './format.ts';
import './insight-texts.ts';
import type { Column } from './rows-table.tsx';

type Measures = Omit<ComparedModel, 'model'>;

/** `of`: the measures of a row; undefined: there are none. */
export function useMeasuredColumns<Row>(of: (row: Row) => Measures | undefined): readonly Column<Row>[] {
  const { t, i18n } = useTranslation();
  const number = (text: string) => <span className="number">{text}</span>;
  return [
    {
      key: 'succeeded',
      title: t('client.compare.succeeded'),
      right: true,
      plain: (row) => of(row)?.succeeded ?? null,
      cell: (row) => number(of(row)?.succeeded == null ? '–' : shareText(of(row)!.succeeded!, 1, i18n.language)),
    },
    durationColumn('firstByte', t('shell.word.firstByte'), (row) => of(row)?.firstByteP50Ms ?? null),
    durationColumn('p95', t('client.compare.p95'), (row) => of(row)?.firstByteP95Ms ?? null, { minor: true }),
    {
      key: 'speed',
      title: t('client.compare.speed'),
      right: true,
      plain: (row) => of(row)?.tokensPerSecond ?? null,
      cell: (row) => {
        const speed = of(row)?.tokensPerSecond ?? null;
        return number(speed === null ? '–' : countText(speed, i18n.language));
      },
    },
  ];
}
