/** Images from a prompt, and from other images. */
import { NumberInput, SimpleGrid } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../../../api/types.ts';
import { imageCall } from '../../../../calls/call.ts';
import { Panel } from '../../../../parts/page.tsx';
import { ImageField, useImages } from '../attach.tsx';
import type { KindProps } from '../bench.tsx';
import { RunForm } from '../run-form.tsx';
import { imageSizes, imagesAtMost, oneOf } from './bounds.ts';
import { Download } from './download.tsx';
import { Choice, LongText } from './fields.tsx';
import { TaskProgress, useOrder } from './task.tsx';

interface Choices {
  readonly size?: string;
  readonly resolution?: string;
  readonly quality?: string;
  readonly n?: number;
}

/** A value that the model supports: one chosen for another model may be unsupported. */
function choicesFor({ limits }: ModelRow, { size, resolution, quality, n = 1 }: Choices) {
  const { resolutions, qualities } = limits;
  return {
    size: oneOf(imageSizes(limits), size),
    resolution: resolutions === undefined ? undefined : oneOf(resolutions, resolution),
    quality: qualities === undefined ? undefined : oneOf(qualities, quality),
    n: Math.min(n, imagesAtMost(limits)),
  };
}

export default function Images(kind: KindProps<ModelRow>) {
  const { t } = useTranslation();
  const { model, apiKey } = kind;
  const { limits } = model;
  const [prompt, setPrompt] = useState('');
  const [choices, setChoices] = useState<Choices>({});
  const mostReferences = limits.references ?? 1;
  const references = useImages(mostReferences);
  const { run, progress, place } = useOrder(apiKey, model.id);
  const chosen = choicesFor(model, choices);
  const call = imageCall({ model: model.id, prompt: prompt.trim(), images: references.images, ...chosen });
  const media = [chosen.quality, chosen.size.includes('x') ? chosen.size : undefined, chosen.resolution];
  return (
    <RunForm
      {...kind}
      run={run}
      call={call}
      isWhole={prompt.trim() !== ''}
      counts={{ image: chosen.n, media: media.filter(Boolean).join() }}
      onRun={() => void place(call)}
      options={<Options of={chosen} limits={limits} onChange={(change) => setChoices({ ...choices, ...change })} />}
      fields={
        <>
          <LongText label={t('client.tasks.prompt')} value={prompt} onChange={setPrompt} most={limits.prompt} />
          <ImageField
            of={references}
            most={mostReferences}
            label={t('client.playground.references')}
            hint={t('client.playground.referencesHint', { most: mostReferences })}
          />
        </>
      }
    >
      <TaskProgress busy={run.busy} progress={progress} ended={run.result !== undefined || run.problem !== undefined} />
      {run.result !== undefined && <Pictures urls={run.result.urls} prompt={prompt} />}
    </RunForm>
  );
}

interface OptionsProps {
  readonly of: ReturnType<typeof choicesFor>;
  readonly limits: ModelRow['limits'];
  readonly onChange: (change: Choices) => void;
}

function Options({ of: { size, resolution, quality, n }, limits, onChange }: OptionsProps) {
  const { t } = useTranslation();
  return (
    <>
      <Choice
        label={t(
          resolution === undefined && limits.size !== undefined ? 'client.playground.size' : 'client.playground.ratio',
        )}
        data={imageSizes(limits).map((value) => ({ value, label: value.replace('x', ' × ') }))}
        value={size}
        onChange={(value) => onChange({ size: value })}
      />
      {resolution !== undefined && (
        <Choice
          label={t('client.playground.resolution')}
          data={limits.resolutions ?? []}
          value={resolution}
          onChange={(value) => onChange({ resolution: value })}
        />
      )}
      {quality !== undefined && (
        <Choice
          label={t('client.playground.quality')}
          data={limits.qualities ?? []}
          value={quality}
          onChange={(value) => onChange({ quality: value })}
        />
      )}
      <NumberInput
        label={t('client.playground.count')}
        min={1}
        max={imagesAtMost(limits)}
        allowDecimal={false}
        clampBehavior="strict"
        value={n}
        onChange={(value) => typeof value === 'number' && onChange({ n: value })}
      />
    </>
  );
}

function Pictures({ urls, prompt }: { readonly urls: readonly string[]; readonly prompt: string }) {
  const { t } = useTranslation();
  return (
    <Panel title={t('shell.word.result')}>
      <SimpleGrid cols={{ base: 1, sm: urls.length === 1 ? 1 : 2 }}>
        {urls.map((url, index) => (
          <figure key={url} className="made">
            <img className="media" src={url} alt={prompt} />
            <figcaption>
              <Download href={url} name={`image-${index + 1}`} />
            </figcaption>
          </figure>
        ))}
      </SimpleGrid>
    </Panel>
  );
}
