/** Makes another batch of the lines that did not succeed: says how many and about what they cost, checks them, and starts. */
import { Button, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import type { BatchRow } from '../../../api/types.ts';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { failedInput } from './again.ts';
import { NewBatch } from './new-batch.tsx';

export const failedOf = ({ errored, cancelled, expired }: BatchRow): number => errored + cancelled + expired;

export function RetryButton({
  batch,
  onStarted,
}: {
  readonly batch: BatchRow;
  readonly onStarted: (id: string) => void;
}) {
  const { t, i18n } = useTranslation();
  const withCost = has(useMe(), 'wallet');
  const [file, setFile] = useState<File>();
  const { busy, problem, run } = useWork((error) => error);
  const lines = failedOf(batch);
  const label = t('client.batches.again', { count: lines, shown: countText(lines, i18n.language) });
  const about =
    batch.cost === null || batch.succeeded === 0 ? undefined : (Number(batch.cost) / batch.succeeded) * lines;
  return (
    <>
      <Button
        size="xs"
        variant="light"
        loading={busy}
        onClick={() => void run(async () => setFile(await failedInput(batch)))}
      >
        {label}
      </Button>
      {problem !== undefined && <ErrorState error={problem} />}
      <Modal opened={file !== undefined} onClose={() => setFile(undefined)} title={label} size="lg">
        {file !== undefined && (
          <Stack>
            <Text fz="sm" component="div">
              {t('client.batches.againHint')}{' '}
              {withCost && about !== undefined && (
                <>
                  {t('client.batches.againCost')} <Money of={about.toFixed(9)} />
                </>
              )}
            </Text>
            <NewBatch file={file} onStarted={onStarted} />
          </Stack>
        )}
      </Modal>
    </>
  );
}
