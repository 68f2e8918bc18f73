/** How near texts are to each other, by their vectors. */
import { Table, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { embeddingCall } from '../../../../calls/call.ts';
import { countText } from '../../../../parts/format.ts';
import { Panel } from '../../../../parts/page.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { Texts, written } from './texts.tsx';

interface Compared {
  readonly texts: readonly string[];
  readonly vectors: readonly (readonly number[])[];
}

export default function Embeddings(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const [values, setValues] = useState<readonly string[]>(['', '']);
  const run = useRun<Compared>(apiKey, model.id);
  const texts = written(values);
  const call = embeddingCall(model.id, texts);
  const read = async (answer: Response): Promise<Compared> => {
    const { data } = (await answer.json()) as { data: { embedding: number[] }[] };
    return { texts, vectors: data.map(({ embedding }) => embedding) };
  };
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={texts.length >= 2}
      onRun={() => void run.start(call, read)}
      fields={
        <Texts
          label={t('client.playground.texts')}
          nameOf={(number) => t('client.playground.textNumber', { number })}
          values={values}
          fewest={2}
          onChange={setValues}
        />
      }
    >
      {run.result !== undefined && <Similarity of={run.result} />}
    </RunForm>
  );
}

function Similarity({ of: { texts, vectors } }: { readonly of: Compared }) {
  const { t, i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  const dimensions = countText(vectors[0]?.length ?? 0, i18n.language);
  return (
    <Panel title={t('client.playground.similarity')} hint={t('client.playground.dimensions', { dimensions })}>
      <Table.ScrollContainer minWidth={0} type="native">
        <Table verticalSpacing={6} aria-label={t('client.playground.similarity')}>
          <Table.Thead>
            <Table.Tr>
              <Table.Td />
              {Array.from(texts.keys(), (index) => (
                <Table.Th key={index} ta="right">
                  {index + 1}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {texts.map((text, row) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a text is known by its place
              <Table.Tr key={row}>
                <Table.Th scope="row" fw={400}>
                  <Text span fz="sm" lineClamp={1}>
                    {row + 1} · {text}
                  </Text>
                </Table.Th>
                {vectors.map((vector, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a text is known by its place
                  <Table.Td key={column} ta="right" className="number" c={row === column ? 'dimmed' : undefined}>
                    {number.format(cosine(vectors[row]!, vector))}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

/** Cosine of the angle between two vectors of one length: 1 for the same direction; 0 where one of them is zero. */
function cosine(left: readonly number[], right: readonly number[]): number {
  const lengths = Math.hypot(...left) * Math.hypot(...right);
  if (lengths === 0) return 0;
  return left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0) / lengths;
}
