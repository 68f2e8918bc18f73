/** In the header of every operator's page: the alerts that run and are not acknowledged. */
import { Box, Button, Tooltip, VisuallyHidden } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { queries } from '../../../api/session.ts';
import { answerQuery, useAnswer } from '../parts/load.tsx';
import type { Alert, Page } from '../types.ts';
import { alertsPath, useAlertTexts } from './alert-texts.ts';

const everyMs = 30_000;
const mostShown = 3;
const query = { state: 'running', limit: 100 };
/** The first page waits at most this long for its banner. */
const patienceMs = 300;

/** Loads the running alerts before the first page is drawn. Resolves without them when the API fails or is slow. */
export async function loadAlerts(): Promise<void> {
  const requested = queries.ensureQueryData(answerQuery<Page<Alert>>(alertsPath, query));
  await Promise.race([requested.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, patienceMs))]);
}

export default function AlertBanner() {
  const { t } = useTranslation();
  const { title } = useAlertTexts();
  const rows = useAnswer<Page<Alert>>(alertsPath, query, everyMs).data?.rows ?? [];
  const open = rows.filter(({ acknowledged }) => acknowledged === null);
  if (open.length === 0) return null;
  const names = open
    .slice(0, mostShown)
    .map((alert) => `${title(alert)}: ${alert.subject}`)
    .join(' · ');
  return (
    <div role="status">
      <Tooltip label={names} multiline maw={360}>
        <Button
          size="compact-sm"
          color="red"
          variant="light"
          leftSection={<IconBell size={15} />}
          renderRoot={(props) => <Link {...props} to="/admin/alerts" search={{ state: 'running' }} />}
        >
          <Box component="span" visibleFrom="sm">
            {t('operator.alerts.running', { count: open.length })}
          </Box>
          <Box component="span" hiddenFrom="sm" aria-label={t('operator.alerts.running', { count: open.length })}>
            {open.length}
          </Box>
        </Button>
      </Tooltip>
      <VisuallyHidden>{names}</VisuallyHidden>
    </div>
  );
}
