/** Where the link of the confirming mail leads: it confirms the address, or says what to do. */
import { Button, Loader, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { verifyMail } from '../../api/auth.ts';
import { EntryFrame } from '../../parts/entry-frame.tsx';
import { useEntered } from './after-entry.ts';

export default function Verify() {
  const { t } = useTranslation();
  const entered = useEntered();
  // Without a token the address was confirmed on the way here; `error` says that it was not.
  const { token, error } = useSearch({ strict: false }) as { token?: string; error?: string };
  const check = useQuery({
    queryKey: ['verify', token],
    queryFn: async () => {
      await verifyMail(token!);
      return true;
    },
    enabled: token !== undefined,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const failed = error !== undefined || check.isError;
  if (token !== undefined && check.isPending)
    return (
      <EntryFrame title={t('entry.verify.title')}>
        <Loader size="sm" aria-label={t('entry.verify.working')} />
      </EntryFrame>
    );
  return (
    <EntryFrame title={failed ? t('entry.verify.failed') : t('entry.verify.title')}>
      <Stack>
        <Text fz="sm">{failed ? t('entry.verify.failedHint') : t('entry.verify.done')}</Text>
        <Button onClick={() => void entered()}>{t('entry.verify.go')}</Button>
      </Stack>
    </EntryFrame>
  );
}
