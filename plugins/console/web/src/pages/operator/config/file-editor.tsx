/** One file: its text in the editor, checked while it is written, saved after a look at the difference. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconAlertTriangle } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { Panel } from '../../../parts/page.tsx';
import { ErrorState, Waiting } from '../../../parts/states.tsx';
import { Act, useActs } from '../parts/act.tsx';
import type { ConfigAnswer, ConfigCheck, ConfigFile } from '../sale-types.ts';
import { CheckResult } from './check-result.tsx';
import { type Mark, offsetOf, type Sayings } from './lint.ts';
import { SaveDialog } from './save-dialog.tsx';

const YamlEditor = lazy(() => import('./yaml-editor.tsx'));

interface FileEditorProps {
  readonly file: ConfigFile;
  readonly schema: ConfigAnswer['schema'];
}

export function FileEditor({ file, schema }: FileEditorProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const { text, setText, base, takeTheirs } = useDraft(file);
  const [place, setPlace] = useState<{ readonly offset: number }>();
  const changed = text !== base;
  const { check, busy } = useCheck(file.name, text, changed && acts);
  const marks = useMemo(() => marksOfProblems(check.data, file.name, text), [check.data, file.name, text]);
  const goTo = (where: string) => {
    const offset = offsetOf(where, file.name, text);
    return offset === undefined ? undefined : () => setPlace({ offset });
  };
  useBlocker({
    shouldBlockFn: () => changed && !window.confirm(t('operator.config.leave')),
    enableBeforeUnload: () => changed,
  });
  const readOnly = !file.writable || !acts;
  return (
    <Panel>
      <Stack gap="sm">
        {!file.writable && acts && (
          <Text fz="sm" c="dimmed">
            {t('operator.config.readOnlyHint')}
          </Text>
        )}
        {changed && file.text !== base && <Overtaken onTake={takeTheirs} />}
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
            <Foot file={file} base={base} text={text} check={check.data} busy={busy} onDiscard={takeTheirs} />
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

/**
 * What is written, and the text that it began from: a save names that one, so that no change in between is
 * written over. A file that changes while nothing is written here is taken as it is.
 */
function useDraft(file: ConfigFile) {
  const [text, setText] = useState(file.text);
  const [base, setBase] = useState(file.text);
  const isOurs = text === base || text === file.text;
  if (file.text !== base && isOurs) {
    setBase(file.text);
    setText(file.text);
  }
  const takeTheirs = () => {
    setBase(file.text);
    setText(file.text);
  };
  return { text, setText, base, takeTheirs };
}

function Overtaken({ onTake }: { readonly onTake: () => void }) {
  const { t } = useTranslation();
  return (
    <Alert color="yellow" variant="light" icon={<IconAlertTriangle size={18} />} title={t('operator.config.overtaken')}>
      <Stack gap="xs" align="flex-start">
        {t('operator.config.overtakenHint')}
        <Button size="xs" variant="default" onClick={onTake}>
          {t('operator.config.takeTheirs')}
        </Button>
      </Stack>
    </Alert>
  );
}

/** The gateway's own judgement, a moment after the last letter. */
function useCheck(name: string, text: string, enabled: boolean) {
  const [settled] = useDebouncedValue(text, 600);
  const check = useQuery({
    queryKey: ['config check', name, settled],
    queryFn: () => send<ConfigCheck>('POST', '/admin/config/check', { file: name, text: settled }),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    gcTime: 30_000,
    enabled,
  });
  // Until then the judgement is of an earlier text.
  return { check, busy: check.isFetching || settled !== text };
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

interface FootProps {
  readonly file: ConfigFile;
  /** The text that was edited. */
  readonly base: string;
  readonly text: string;
  readonly check: ConfigCheck | undefined;
  readonly busy: boolean;
  readonly onDiscard: () => void;
}

function Foot({ file, base, text, check, busy, onDiscard }: FootProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<'save' | 'discard'>();
  const changed = text !== base;
  const close = () => setDialog(undefined);
  const isFaulty = (check?.problems.length ?? 0) > 0;
  return (
    <Group justify="space-between" gap="xs">
      <Text fz="xs" c="dimmed">
        {changed ? t('operator.config.changed') : t('operator.config.unchanged')} · {t('operator.config.keys')}
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" disabled={!changed} onClick={() => setDialog('discard')}>
          {t('operator.config.discard')}
        </Button>
        <Button
          size="xs"
          disabled={!changed || check === undefined || isFaulty || busy}
          onClick={() => setDialog('save')}
        >
          {t('operator.config.review')}
        </Button>
      </Group>
      {dialog === 'save' && check !== undefined && (
        <SaveDialog name={file.name} previous={base} text={text} check={check} onClose={close} />
      )}
      <Act
        opened={dialog === 'discard'}
        onClose={close}
        title={t('operator.config.discardTitle', { name: file.name })}
        text={t('operator.config.discardText')}
        action={t('operator.config.discard')}
        danger
        withReason={false}
        act={async () => {
          onDiscard();
          return undefined;
        }}
      />
    </Group>
  );
}
