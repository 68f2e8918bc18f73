/** Which rules a text breaks. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { moderationCall } from '../../../../calls/call.ts';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { LongText } from './fields.tsx';
import { ScoreTable } from './score-table.tsx';

interface Judged {
  readonly flagged: boolean;
  readonly categories: Readonly<Record<string, boolean>>;
  /** Some vendors state flags alone. */
  readonly category_scores?: Readonly<Record<string, number>> | null;
}

export default function Moderation(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const [input, setInput] = useState('');
  const run = useRun<Judged>(apiKey, model.id);
  const call = moderationCall(model.id, input.trim());
  const read = async (answer: Response) => ((await answer.json()) as { results: [Judged] }).results[0];
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={input.trim() !== ''}
      counts={{}}
      onRun={() => void run.start(call, read)}
      fields={<LongText label={t('client.playground.text')} value={input} onChange={setInput} />}
    >
      {run.result !== undefined && (
        <ScoreTable
          title={t(run.result.flagged ? 'client.playground.flagged' : 'client.playground.notFlagged')}
          nameTitle={t('client.playground.category')}
          scoreTitle={t('client.playground.score')}
          rows={rowsOf(run.result)}
        />
      )}
    </RunForm>
  );
}

function rowsOf({ categories, category_scores: scores }: Judged) {
  return Object.entries(categories).map(([name, isFlagged]) => ({ name, isFlagged, score: scores?.[name] }));
}
