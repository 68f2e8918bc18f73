/** Whole pages for errors: a page that failed, and an address that names nothing. */
import { Box, Button } from '@mantine/core';
import { IconMapOff } from '@tabler/icons-react';
import { type ErrorComponentProps, Link, useRouter } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { EmptyState, ErrorState } from './states.tsx';

export function Failure({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const again = () => {
    reset();
    void router.invalidate();
  };
  return (
    <Box p="lg" maw={640} mx="auto">
      <ErrorState error={error} onRetry={again} />
    </Box>
  );
}

export function NotFound() {
  const { t } = useTranslation();
  return (
    <EmptyState
      icon={IconMapOff}
      title={t('shell.error.notFound')}
      hint={t('shell.error.notFoundHint')}
      action={<Button renderRoot={(props) => <Link {...props} to="/" />}>{t('shell.error.home')}</Button>}
    />
  );
}
