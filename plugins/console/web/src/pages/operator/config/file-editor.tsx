/** One file: its text in the editor, checked while it is written, saved after a look at the difference. */
import { Stack, Text } from '@mantine/core';
import { lazy, Suspense, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Panel } from '../../../parts/page.tsx';
import { ErrorState, Waiting } from '../../../parts/states.tsx';
import { useActs } from '../parts/act.tsx';
import type { ConfigAnswer, ConfigCheck } from '../sale-types.ts';
import { CheckResult } from './check-result.tsx';
import { DraftFoot, Overtaken } from './draft-foot.tsx';
import type { Draft } from './drafts.ts';
import { type Mark, offsetOf, type Sayings } from './lint.ts';
import { useCheck } from './use-check.ts';

const YamlEditor = lazy(() => import('./yaml-editor.tsx'));

interface FileEditorProps {
  readonly draft: Draft;
  readonly schema: ConfigAnswer['schema'];
  /** `main.yaml:12`: where to begin. */
  readonly at: string | undefined;
}

export function FileEditor({ draft, schema, at }: FileEditorProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const { file, text, setText, takeTheirs, isChanged: changed } = draft;
  const [place, setPlace] = useState(() => {
    const offset = at === undefined ? undefined : offsetOf(at, file.name, text);
    return offset === undefined ? undefined : { offset };
  });
  const { check, busy } = useCheck(file.name, text, changed && acts);
  const marks = useMemo(() => marksOfProblems(check.data, file.name, text), [check.data, file.name, text]);
  const goTo = (where: string) => {
    const offset = offsetOf(where, file.name, text);
    return offset === undefined ? undefined : () => setPlace({ offset });
  };
  const readOnly = !file.writable || !acts;
  return (
    <Panel>
      <Stack gap="sm">
        {file.readOnly !== null && acts && (
          <Text fz="sm" c="dimmed">
            {t(`operator.config.forms.tree.${file.readOnly}`, { file: file.name })}
          </Text>
        )}
        {draft.isOvertaken && <Overtaken onTake={takeTheirs} />}
        <Suspense fallback={<Waiting height={420} />}>
          <YamlEditor
            value={text}
            onChange={setText}
            schema={schema}
            marks={marks}
            readOnly={readOnly}
            label={t('operator.config.editor', { file: file.name })}
            say={useSayings()}
            place={place}
          />
        </Suspense>
        {!readOnly && (
          <>
            <DraftFoot draft={draft} check={check.data} busy={busy} hint={t('operator.config.keys')} />
            {check.isError ? (
              <ErrorState error={check.error} onRetry={() => void check.refetch()} />
            ) : (
              changed && <CheckResult check={check.data} busy={busy} onGo={goTo} />
            )}
          </>
        )}
      </Stack>
    </Panel>
  );
}

function marksOfProblems(check: ConfigCheck | undefined, name: string, text: string): Mark[] {
  return (check?.problems ?? []).flatMap(({ where, message }) => {
    const from = offsetOf(where, name, text);
    if (from === undefined) return [];
    const lineEnd = text.indexOf('\n', from);
    return [{ from, to: lineEnd < 0 ? text.length : lineEnd, message }];
  });
}

function useSayings(): Sayings {
  const { t } = useTranslation();
  return useMemo(
    () => ({
      unknown: (name, known) => t('operator.config.unknownMember', { name, known: known.join(', ') }),
      value: (value, allowed) => t('operator.config.wrongValue', { value, allowed: allowed.join(', ') }),
    }),
    [t],
  );
}
