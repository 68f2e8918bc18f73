/** Starts a new batch: choose a key, upload a file and have its lines checked, start. */
import { Alert, Button, FileInput, Stack, Text } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { CodeBlock } from '../../../parts/code-block.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { countText } from '../../../parts/format.ts';
import { useErrorText } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { SessionKey, useSessionKey } from '../session-key.tsx';
import { Faults } from './faults.tsx';
import { type CheckedFile, OrderError, start, uploadAndCheck } from './order.ts';

const example = `{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "…", "messages": [{"role": "user", "content": "…"}]}}`;

interface NewBatchProps {
  /** Chosen beforehand; absent: the person chooses one. */
  readonly file?: File;
  readonly onStarted: (id: string) => void;
}

export function NewBatch({ file, onStarted }: NewBatchProps) {
  const { t, i18n } = useTranslation();
  const queries = useQueryClient();
  const textOf = useErrorText();
  const [key, setKey] = useSessionKey();
  const [chosen, setChosen] = useState<File | null>(file ?? null);
  const [checked, setChecked] = useState<CheckedFile>();
  const { busy, problem, setProblem, run } = useWork((error) =>
    error instanceof OrderError ? error.message : textOf(error),
  );
  const check = () => run(async () => setChecked(await uploadAndCheck(chosen!, key)));
  const begin = () =>
    run(async () => {
      const id = await start(checked!, key);
      await askAgain(queries, listKey('/batches'));
      onStarted(id);
    });
  return (
    <Stack>
      {file === undefined && (
        <>
          <Text fz="sm">{t('client.batches.how')}</Text>
          <CodeBlock label={t('client.batches.example')} text={example} />
        </>
      )}
      <SessionKey value={key} onChange={setKey} />
      <FileInput
        label={t('client.batches.file')}
        placeholder={t('client.batches.choose')}
        description={t('client.batches.fileHint')}
        accept=".jsonl,application/jsonl,application/x-ndjson"
        leftSection={<IconFileUpload size={16} aria-hidden />}
        clearable
        clearButtonProps={{ 'aria-label': t('client.batches.clear') }}
        value={chosen}
        onChange={(file) => {
          setChosen(file);
          setChecked(undefined);
          setProblem(undefined);
        }}
      />
      {problem !== undefined && (
        <Alert color="red" variant="light" role="alert">
          {problem}
        </Alert>
      )}
      {checked === undefined && (
        <Button disabled={chosen === null || key === ''} loading={busy} onClick={() => void check()}>
          {t('client.batches.check')}
        </Button>
      )}
      {checked !== undefined && checked.errors.length > 0 && <Faults of={checked.errors} />}
      {checked !== undefined && checked.errors.length === 0 && (
        <>
          <Alert color="teal" variant="light" role="status">
            {t('client.batches.checked', {
              count: checked.lines,
              shown: countText(checked.lines, i18n.language),
              endpoint: checked.endpoint,
            })}
          </Alert>
          <Button loading={busy} onClick={() => void begin()}>
            {t('client.batches.start')}
          </Button>
        </>
      )}
    </Stack>
  );
}
