/** Stands in for rows: an empty state, a failure with a retry, or a skeleton. */
import { Alert, Button, Center, EmptyState as Empty, Skeleton, Stack } from '@mantine/core';
import { type Icon, IconAlertCircle, IconInbox } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../api/client.ts';
import en from '../texts/en/shell.ts';

interface EmptyStateProps {
  readonly title: string;
  /** The next step. */
  readonly hint?: ReactNode;
  readonly icon?: Icon;
  readonly action?: ReactNode;
}

export function EmptyState({ title, hint, icon: Picture = IconInbox, action }: EmptyStateProps) {
  return (
    <Center py={44} px="md">
      <Stack align="center" gap="md">
        <Empty size="sm" title={title} description={hint} icon={<Picture stroke={1.5} />} withIndicatorBackground />
        {action}
      </Stack>
    </Center>
  );
}

/**
 * The text of an error. The API's own message is the most exact one, and English; in other languages the text of its code
 * comes first, and the message behind it where the code says little.
 */
export function useErrorText(): (error: unknown) => string {
  const { t, i18n } = useTranslation();
  return (error) => {
    if (!(error instanceof ApiError)) return t('shell.error.unknown', { reference: nameOf(error) });
    if (error.status === 0) return t('shell.error.offline');
    const known = isKnown(error.code) ? t(`shell.errors.${error.code}`) : undefined;
    if (error.message === '') return known ?? t('shell.error.unknown', { reference: error.code });
    if (i18n.language === 'en' || known === undefined) return error.message;
    return general.has(error.code) ? `${known} (${error.message})` : known;
  };
}
/** Codes that stand for many causes. */
const general = new Set(['invalid_request', 'not_found', 'conflict', 'unavailable']);
const isKnown = (code: string): code is keyof typeof en.errors => Object.hasOwn(en.errors, code);
const nameOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

export function ErrorState({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle size={18} />} title={t('shell.error.title')}>
      <Stack gap="sm" align="flex-start">
        {textOf(error)}
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={onRetry}>
            {t('shell.retry')}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** As high as the content to come, so that nothing moves when it is there. */
export function Waiting({ height = 240 }: { readonly height?: number }) {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t('shell.loading')}>
      <Skeleton h={height} radius="md" />
    </div>
  );
}
