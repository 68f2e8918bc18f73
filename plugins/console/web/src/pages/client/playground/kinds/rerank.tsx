/** Documents in the order in which they answer a query. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { rerankCall } from '../../../../calls/call.ts';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { ScoreTable } from './score-table.tsx';
import { Texts, written } from './texts.tsx';

interface Ranked {
  readonly name: string;
  readonly score: number;
}

export default function Rerank(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const [query, setQuery] = useState('');
  const [values, setValues] = useState<readonly string[]>(['', '']);
  const run = useRun<readonly Ranked[]>(apiKey, model.id);
  const documents = written(values);
  const call = rerankCall(model.id, query.trim(), documents);
  const read = async (answer: Response): Promise<readonly Ranked[]> => {
    const { results } = (await answer.json()) as { results: { index: number; relevance_score: number }[] };
    return results.map(({ index, relevance_score: score }) => ({ name: documents[index] ?? '', score }));
  };
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
        <ScoreTable
          title={t('shell.word.result')}
          nameTitle={t('client.playground.document')}
          scoreTitle={t('client.playground.relevance')}
          rows={run.result}
        />
      )}
    </RunForm>
  );
}
