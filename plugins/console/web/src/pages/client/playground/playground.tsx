/** Calls a model of any kind with the address and key that programs use; the form follows the kind. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ComponentType, lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../../../api/models.ts';
import type { ModelRow } from '../../../api/types.ts';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState, ErrorState, Waiting } from '../../../parts/states.tsx';
import { SessionKey, useSessionKey } from '../session-key.tsx';
import '../playground-texts.ts';
import type { KindProps } from './bench.tsx';

type Form = ComponentType<KindProps<ModelRow>>;
type Kind = ModelRow['kind'];
/** In the order of the list of models; each is loaded when a model of its kind is chosen. */
const forms = new Map<Kind, Form>([
  ['chat', lazy(() => import('./chat/chat.tsx'))],
  ['image', lazy(() => import('./kinds/images.tsx'))],
  ['video', lazy(() => import('./kinds/videos.tsx'))],
  ['speech', lazy(() => import('./kinds/speech.tsx'))],
  ['transcription', lazy(() => import('./kinds/transcription.tsx'))],
  ['embedding', lazy(() => import('./kinds/embeddings.tsx'))],
  ['rerank', lazy(() => import('./kinds/rerank.tsx'))],
  ['moderation', lazy(() => import('./kinds/moderation.tsx'))],
]);

const Replay = lazy(() => import('./replay.tsx'));

export default function Playground() {
  const { t } = useTranslation();
  const replayed = useSearchState()[0]['replay'];
  if (replayed === undefined) return <Models />;
  return (
    <Page title={t('client.playgroundTitle')} hint={t('client.playground.hint')}>
      <Suspense fallback={<Waiting height={420} />}>
        <Replay key={replayed} id={replayed} />
      </Suspense>
    </Page>
  );
}

function Models() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const [key, setKey] = useSessionKey();
  const { data, error, refetch } = useQuery(modelsQuery);
  const usable = (data?.rows ?? []).filter(({ kind, allowed }) => forms.has(kind) && allowed);
  const ordered = [...forms.keys()].flatMap((kind) => usable.filter((row) => row.kind === kind));
  const model = ordered.find(({ id }) => id === search['model']) ?? ordered[0];
  const KindForm = model === undefined ? undefined : forms.get(model.kind);
  return (
    <Page title={t('client.playgroundTitle')} hint={t('client.playground.hint')}>
      {error !== null && <ErrorState error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Waiting height={420} />}
      {data !== undefined && model === undefined && (
        <Panel>
          <EmptyState title={t('client.playground.noModel')} hint={t('client.playground.noModelHint')} />
        </Panel>
      )}
      {model !== undefined && KindForm !== undefined && (
        <Suspense fallback={<Waiting height={420} />}>
          <KindForm
            key={model.kind}
            model={model}
            apiKey={key}
            head={
              <>
                <ModelChoice models={ordered} model={model} />
                <SessionKey value={key} onChange={setKey} />
              </>
            }
          />
        </Suspense>
      )}
    </Page>
  );
}

/** Grouped by what the models make. It lives in the address bar. */
function ModelChoice({ models, model }: { readonly models: readonly ModelRow[]; readonly model: ModelRow }) {
  const { t } = useTranslation();
  const [, change] = useSearchState();
  const groups = Map.groupBy(models, ({ kind }) => kind);
  const choose = (id: string | null) => {
    const chosen = models.find((row) => row.id === id);
    if (chosen === undefined) return;
    // What only conversations have.
    change({ model: chosen.id, ...(chosen.kind === 'chat' ? {} : { beside: undefined, protocol: undefined }) });
  };
  return (
    <Select
      label={t('shell.word.model')}
      data={[...groups].map(([kind, rows]) => ({
        group: t(`client.models.kinds.${kind}`),
        items: rows.map(({ id }) => id),
      }))}
      value={model.id}
      searchable
      allowDeselect={false}
      maxDropdownHeight={360}
      onChange={choose}
    />
  );
}
