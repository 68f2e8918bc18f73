/** A text spoken by a voice. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { speechCall } from '../../../../calls/call.ts';
import { Panel } from '../../../../parts/page.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { useRun } from '../use-run.ts';
import { oneOf, soundFormats, voicesOf } from './bounds.ts';
import { Download, useBlobAddress } from './download.tsx';
import { Choice, LongText } from './fields.tsx';

interface Spoken {
  readonly sound: Blob;
  readonly format: string;
}

export default function Speech(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const { limits } = model;
  const [input, setInput] = useState('');
  const [wantedVoice, setVoice] = useState<string>();
  const [wantedFormat, setFormat] = useState<string>();
  const run = useRun<Spoken>(apiKey, model.id);
  const address = useBlobAddress(run.result?.sound);
  const voice = oneOf(voicesOf(limits), wantedVoice);
  const format = oneOf(soundFormats(limits), wantedFormat);
  const text = input.trim();
  const call = speechCall({ model: model.id, input: text, voice, format });
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={text !== ''}
      counts={{ character: [...text].length }}
      onRun={() => void run.start(call, async (answer) => ({ sound: await answer.blob(), format }))}
      options={
        <>
          <Choice label={t('client.playground.voice')} data={voicesOf(limits)} value={voice} onChange={setVoice} />
          <Choice
            label={t('client.playground.format')}
            data={soundFormats(limits)}
            value={format}
            onChange={setFormat}
          />
        </>
      }
      fields={<LongText label={t('client.playground.text')} value={input} onChange={setInput} most={limits.prompt} />}
    >
      {run.result !== undefined && address !== undefined && (
        <Panel
          title={t('shell.word.result')}
          actions={<Download href={address} name={`speech.${run.result.format}`} />}
        >
          {/* biome-ignore lint/a11y/useMediaCaption: its text stands above */}
          <audio className="sound" src={address} controls aria-label={t('client.playground.spoken')} />
        </Panel>
      )}
    </RunForm>
  );
}
