/** Documents in the order in which they answer a query. */
import { Table, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { rerankCall } from '../../../../calls/call.ts';
import { Panel } from '../../../../parts/page.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { Texts, written } from './texts.tsx';

interface Ranked {
  readonly text: string;
  readonly score: number;
}

export default function Rerank(kind: KindProps<ModelRow>) {
  const { t, i18n } = useTranslation();
  const { model, apiKey } = kind;
  const [query, setQuery] = useState('');
  const [values, setValues] = useState<readonly string[]>(['', '']);
  const run = useRun<readonly Ranked[]>(apiKey, model.id);
  const documents = written(values);
  const call = rerankCall(model.id, query.trim(), documents);
  const read = async (answer: Response): Promise<readonly Ranked[]> => {
    const { results } = (await answer.json()) as { results: { index: number; relevance_score: number }[] };
    return results.map(({ index, relevance_score: score }) => ({ text: documents[index] ?? '', score }));
  };
  const number = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={query.trim() !== '' && documents.length >= 2}
      counts={{ search: 1 }}
      onRun={() => void run.start(call, read)}
      fields={
        <>
          <TextInput
            label={t('client.playground.query')}
            value={query}
            onChange={({ currentTarget }) => setQuery(currentTarget.value)}
          />
          <Texts
            label={t('client.playground.documents')}
            nameOf={(index) => t('client.playground.documentNumber', { number: index })}
            values={values}
            fewest={2}
            onChange={setValues}
          />
        </>
      }
    >
      {run.result !== undefined && (
        <Panel title={t('client.playground.result')}>
          <Table verticalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t('client.playground.document')}</Table.Th>
                <Table.Th ta="right">{t('client.playground.relevance')}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {run.result.map(({ text, score }) => (
                <Table.Tr key={text}>
                  <Table.Td>{text}</Table.Td>
                  <Table.Td ta="right" className="number">
                    {number.format(score)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Panel>
      )}
    </RunForm>
  );
}
