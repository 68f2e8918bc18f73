/** A video from a prompt, and from its first frame. */
import { NumberInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { videoCall } from '../../../../calls/call.ts';
import { Panel } from '../../../../parts/page.tsx';
import { ImageField, useImages } from '../attach.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { oneOf, secondsOf, videoSizes } from './bounds.ts';
import { Download } from './download.tsx';
import { Choice, LongText } from './fields.tsx';
import { TaskProgress, useOrder } from './task.tsx';

export default function Videos(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const { limits } = model;
  const [prompt, setPrompt] = useState('');
  const [wanted, setWanted] = useState<number>();
  const [size, setSize] = useState<string>();
  const frame = useImages(1);
  const { run, progress, place } = useOrder(apiKey, model.id);
  const { most, usual } = secondsOf(limits);
  const seconds = Math.min(wanted ?? usual, most);
  const sizes = videoSizes(limits);
  const chosen = oneOf(
    sizes.map(({ pixels }) => pixels),
    size,
  );
  const call = videoCall({ model: model.id, prompt: prompt.trim(), seconds, size: chosen, image: frame.images[0] });
  const isShown = frame.images.length > 0 || limits.needsImage !== true;
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={prompt.trim() !== '' && isShown}
      counts={{ second: seconds, media: sizes.find(({ pixels }) => pixels === chosen)?.resolution ?? '' }}
      onRun={() => void place(call)}
      options={
        <>
          <NumberInput
            label={t('client.playground.seconds')}
            min={1}
            max={most}
            allowDecimal={false}
            clampBehavior="strict"
            value={seconds}
            onChange={(value) => typeof value === 'number' && setWanted(value)}
          />
          <Choice
            label={t('client.playground.size')}
            data={sizes.map(({ pixels, resolution, ratio }) => ({ value: pixels, label: `${resolution}, ${ratio}` }))}
            value={chosen}
            onChange={setSize}
          />
        </>
      }
      fields={
        <>
          <LongText label={t('client.tasks.prompt')} value={prompt} onChange={setPrompt} most={limits.prompt} />
          <ImageField
            of={frame}
            most={1}
            label={t('client.playground.firstFrame')}
            hint={t(limits.needsImage === true ? 'client.playground.frameNeeded' : 'client.playground.frameHint')}
          />
        </>
      }
    >
      <TaskProgress busy={run.busy} progress={progress} ended={run.result !== undefined || run.problem !== undefined} />
      {run.result?.urls.map((url) => (
        <Panel key={url} title={t('shell.word.result')} actions={<Download href={url} name="video.mp4" />}>
          {/* biome-ignore lint/a11y/useMediaCaption: nothing is known of what is said in it */}
          <video className="media" src={url} controls playsInline aria-label={prompt} />
        </Panel>
      ))}
    </RunForm>
  );
}
