/** Faults of the lines of an input. */
import { Alert, Code, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { BatchRow } from '../../../api/types.ts';

const shown = 20;

export function Faults({ of }: { readonly of: BatchRow['errors'] }) {
  const { t } = useTranslation();
  return (
    <Alert color="red" variant="light" title={t('client.batches.faults', { count: of.length })} role="alert">
      <Stack gap={4}>
        {of.slice(0, shown).map(({ line, code, message }) => (
          <Text key={`${line} ${code}`} fz="sm">
            {line === null ? t('client.batches.wholeFile') : t('client.batches.line', { line })} <Code>{code}</Code>{' '}
            {message}
          </Text>
        ))}
        {of.length > shown && (
          <Text fz="sm" c="dimmed">
            {t('client.batches.moreFaults', { count: of.length - shown })}
          </Text>
        )}
      </Stack>
    </Alert>
  );
}
