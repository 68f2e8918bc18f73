/** The transcription of a file, with its segments where the model has them. */
import { FileInput, Table, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { transcriptionCall } from '../../../../calls/call.ts';
import { CopyButton } from '../../../../parts/copy-button.tsx';
import { localDecimals } from '../../../../parts/format.ts';
import { Panel } from '../../../../parts/page.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { oneOf, transcriptFormats } from './bounds.ts';
import { useBlobAddress } from './download.tsx';
import { Choice } from './fields.tsx';

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}
interface Transcript {
  readonly text: string;
  readonly segments: readonly Segment[];
}

async function readTranscript(answer: Response): Promise<Transcript> {
  const body = await answer.text();
  if (!(answer.headers.get('content-type') ?? '').includes('json')) return { text: body, segments: [] };
  const { text, segments = [] } = JSON.parse(body) as { text: string; segments?: readonly Segment[] };
  return { text, segments };
}

export default function Transcription(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const { limits } = model;
  const [file, setFile] = useState<File | null>(null);
  const [wanted, setFormat] = useState<string>();
  const run = useRun<Transcript>(apiKey, model.id);
  const address = useBlobAddress(file ?? undefined);
  const seconds = useSeconds(address);
  const format = oneOf(transcriptFormats(limits), wanted);
  const call = transcriptionCall(model.id, file ?? { name: 'speech.mp3' }, format);
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={file !== null}
      {...(seconds === undefined ? {} : { counts: { audio: seconds } })}
      onRun={() => void run.start(call, readTranscript)}
      options={
        <Choice
          label={t('client.playground.format')}
          data={transcriptFormats(limits)}
          value={format}
          onChange={setFormat}
        />
      }
      fields={
        <>
          <FileInput
            label={t('client.playground.audioFile')}
            placeholder={t('client.playground.chooseFile')}
            accept="audio/*,video/mp4,video/webm"
            clearable
            clearButtonProps={{ 'aria-label': t('client.playground.dropFile') }}
            value={file}
            onChange={setFile}
          />
          {address !== undefined && (
            // biome-ignore lint/a11y/useMediaCaption: its words are what is asked for
            <audio className="sound" src={address} controls aria-label={file?.name} />
          )}
        </>
      }
    >
      {run.result !== undefined && <Words transcript={run.result} />}
    </RunForm>
  );
}

/** Length of a sound in whole seconds, as it is charged; undefined: not known, or the browser cannot read it. */
function useSeconds(address: string | undefined): number | undefined {
  const [seconds, setSeconds] = useState<number>();
  useEffect(() => {
    setSeconds(undefined);
    if (address === undefined) return;
    const sound = new Audio();
    sound.preload = 'metadata';
    sound.onloadedmetadata = () => setSeconds(Number.isFinite(sound.duration) ? Math.ceil(sound.duration) : undefined);
    sound.src = address;
    return () => sound.removeAttribute('src');
  }, [address]);
  return seconds;
}

const clock = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${localDecimals((seconds % 60).toFixed(1).padStart(4, '0'))}`;

function Words({ transcript: { text, segments } }: { readonly transcript: Transcript }) {
  const { t } = useTranslation();
  return (
    <Panel title={t('shell.word.result')} actions={<CopyButton text={text} />}>
      <Text fz="sm" className="said-text">
        {text}
      </Text>
      {segments.length > 0 && (
        <Table mt="md" verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('client.playground.from')}</Table.Th>
              <Table.Th>{t('client.playground.until')}</Table.Th>
              <Table.Th>{t('client.playground.text')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {segments.map(({ start, end, text: said }) => (
              <Table.Tr key={start}>
                <Table.Td className="number">{clock(start)}</Table.Td>
                <Table.Td className="number">{clock(end)}</Table.Td>
                <Table.Td>{said}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Panel>
  );
}
