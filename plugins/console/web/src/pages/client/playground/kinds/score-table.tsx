/** Names with their scores, such as categories or documents. Where none has a score, those that are flagged say so. */
import { Table } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { Panel } from '../../../../parts/page.tsx';

interface Scored {
  readonly name: string;
  /** undefined: the vendor states none. */
  readonly score: number | undefined;
  readonly isFlagged?: boolean;
}

interface ScoreTableProps {
  readonly title: string;
  readonly nameTitle: string;
  readonly scoreTitle: string;
  readonly rows: readonly Scored[];
}

export function ScoreTable({ title, nameTitle, scoreTitle, rows }: ScoreTableProps) {
  const { t, i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  const hasScores = rows.some(({ score }) => score !== undefined);
  const textOf = ({ score, isFlagged = false }: Scored) => {
    if (hasScores) return score === undefined ? '–' : number.format(score);
    return isFlagged ? t('client.playground.flagged') : '–';
  };
  return (
    <Panel title={title}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{nameTitle}</Table.Th>
            <Table.Th ta="right">{hasScores ? scoreTitle : t('shell.word.result')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.name} className={row.isFlagged ? 'bad' : undefined}>
              <Table.Td>{row.name}</Table.Td>
              <Table.Td ta="right" className="number">
                {textOf(row)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}
