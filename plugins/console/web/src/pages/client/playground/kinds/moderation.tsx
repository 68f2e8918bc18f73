/** Which rules a text breaks. */
import { Table, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { moderationCall } from '../../../../calls/call.ts';
import { Panel } from '../../../../parts/page.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { LongText } from './fields.tsx';

interface Judged {
  readonly flagged: boolean;
  readonly categories: Readonly<Record<string, boolean>>;
  readonly category_scores?: Readonly<Record<string, number>>;
}

export default function Moderation(kind: KindProps<ModelRow>) {
  const { t, i18n } = useTranslation();
  const { model, apiKey } = kind;
  const [input, setInput] = useState('');
  const run = useRun<Judged>(apiKey, model.id);
  const call = moderationCall(model.id, input.trim());
  const read = async (answer: Response) => ((await answer.json()) as { results: [Judged] }).results[0];
  const number = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
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
        <Panel title={t(run.result.flagged ? 'client.playground.flagged' : 'client.playground.notFlagged')}>
          <Table verticalSpacing={5}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t('client.playground.category')}</Table.Th>
                <Table.Th ta="right">{t('client.playground.score')}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {Object.entries(run.result.categories).map(([name, isMeant]) => (
                <Table.Tr key={name}>
                  <Table.Td>
                    <Text span fz="sm" className={isMeant ? 'bad' : undefined}>
                      {name}
                    </Text>
                  </Table.Td>
                  <Table.Td ta="right" className={isMeant ? 'number bad' : 'number'}>
                    {number.format(run.result?.category_scores?.[name] ?? Number(isMeant))}
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
