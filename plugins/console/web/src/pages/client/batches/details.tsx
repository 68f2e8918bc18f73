/** One batch whole: progress, cost, faults of its input, files, and end. */
import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { get, send } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import type { BatchRow } from '../../../api/types.ts';
import { Confirm } from '../../../parts/confirm.tsx';
import { listKey } from '../../../parts/data-table.tsx';
import { FactList } from '../../../parts/fact-list.tsx';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { ErrorState, Waiting } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { DownloadButton } from '../files.tsx';
import { BatchState, Done } from './batch-parts.tsx';
import { Faults } from './faults.tsx';
import { failedOf, RetryButton } from './retry.tsx';

const batchKey = ['batch'] as const;

interface BatchDetailsProps {
  readonly id: string;
  /** Another batch was started. */
  readonly onStarted: (id: string) => void;
}

export function BatchDetails({ id, onStarted }: BatchDetailsProps) {
  const batch = useQuery({
    queryKey: [...batchKey, id],
    queryFn: ({ signal }) => get<BatchRow>(`/batches/${encodeURIComponent(id)}`, {}, signal),
    refetchInterval: ({ state: { data } }) => (data?.outcome === null ? 2_000 : false),
  });
  if (batch.isPending) return <Waiting />;
  if (batch.isError) return <ErrorState error={batch.error} onRetry={() => void batch.refetch()} />;
  return <Details batch={batch.data} onStarted={onStarted} />;
}

function Details({ batch, onStarted }: { readonly batch: BatchRow } & Pick<BatchDetailsProps, 'onStarted'>) {
  const { t, i18n } = useTranslation();
  const withCost = has(useMe(), 'wallet');
  const count = (value: number) => countText(value, i18n.language);
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t('client.batches.done'), <Done key="done" batch={batch} />],
    [t('client.batches.succeeded'), count(batch.succeeded)],
    [t('client.batches.errored'), count(batch.errored)],
    [t('client.batches.notMade'), count(batch.cancelled + batch.expired)],
    ...(withCost ? ([[t('client.batches.costSoFar'), <Money key="cost" of={batch.cost} />]] as const) : []),
    ...(withCost && Number(batch.held) > 0
      ? ([[t('client.batches.held'), <Money key="held" of={batch.held} />]] as const)
      : []),
    [t('client.batches.endpoint'), <Code key="endpoint">{batch.endpoint}</Code>],
    [t('client.batches.created'), <Time key="created" at={batch.createdAt} />],
    batch.endedAt === null
      ? [t('client.batches.expires'), <Time key="expires" at={batch.expiresAt} />]
      : [t('client.batches.ended'), <Time key="ended" at={batch.endedAt} />],
    [t('client.batches.id'), <Code key="id">{batch.id}</Code>],
  ];
  return (
    <Stack>
      <Group justify="space-between">
        <BatchState batch={batch} />
        {batch.outcome === null && batch.cancelAt === null && <CancelButton id={batch.id} />}
        {batch.outcome !== null && failedOf(batch) > 0 && !isGoogle(batch) && (
          <RetryButton key={batch.id} batch={batch} onStarted={onStarted} />
        )}
      </Group>
      {batch.errors.length > 0 && <Faults of={batch.errors} />}
      <FactList facts={facts} labelWidth={170} />
      <BatchFiles batch={batch} />
    </Stack>
  );
}

/** Lines of these batches may have no ids. */
const isGoogle = ({ endpoint }: BatchRow) => endpoint.startsWith('/v1beta/');

function BatchFiles({ batch: { id, inputFile, outputFile, errorFile } }: { readonly batch: BatchRow }) {
  const { t } = useTranslation();
  const files = [
    [t('client.batches.input'), inputFile, `${id}_input.jsonl`],
    [t('client.batches.output'), outputFile, `${id}_output.jsonl`],
    [t('client.batches.errorFile'), errorFile, `${id}_error.jsonl`],
  ] as const;
  return (
    <Stack gap={6}>
      <Text fz="sm" fw={600}>
        {t('client.filesTitle')}
      </Text>
      {files.map(
        ([title, file, name]) =>
          file !== null && (
            <Group key={name} justify="space-between">
              <Text fz="sm">{title}</Text>
              <DownloadButton id={file} name={name} />
            </Group>
          ),
      )}
      <Text fz="xs" c="dimmed">
        {t('client.batches.filesHint')}
      </Text>
    </Stack>
  );
}

function CancelButton({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [opened, setOpened] = useState(false);
  const cancel = async () => {
    await send('POST', `/batches/${encodeURIComponent(id)}/cancel`);
    notifications.show({ message: t('client.batches.cancelling'), color: 'teal' });
    await Promise.all([askAgain(queries, batchKey), askAgain(queries, listKey('/batches'))]);
  };
  return (
    <>
      <Button size="xs" variant="light" color="red" onClick={() => setOpened(true)}>
        {t('client.batches.cancel')}
      </Button>
      <Confirm
        opened={opened}
        title={t('client.batches.cancelTitle')}
        action={t('client.batches.cancel')}
        danger
        onConfirm={cancel}
        onClose={() => setOpened(false)}
      >
        {t('client.batches.cancelWords')}
      </Confirm>
    </>
  );
}
