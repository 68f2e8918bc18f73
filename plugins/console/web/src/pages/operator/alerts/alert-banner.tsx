/** Above every operator's page: the alerts that run and are not acknowledged. */
import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useAnswer } from '../parts/load.tsx';
import type { Alert, Page } from '../types.ts';
import { alertsPath, useAlertTexts } from './alert-texts.ts';

const everyMs = 30_000;
const mostShown = 3;

export default function AlertBanner() {
  const { t } = useTranslation();
  const { title } = useAlertTexts();
  const rows = useAnswer<Page<Alert>>(alertsPath, { state: 'running', limit: 100 }, everyMs).data?.rows ?? [];
  const open = rows.filter(({ acknowledged }) => acknowledged === null);
  if (open.length === 0) return null;
  return (
    <div className="banner" data-tone="bad" role="status">
      <Anchor
        inherit
        c="inherit"
        underline="always"
        renderRoot={(props) => <Link {...props} to="/admin/alerts" search={{ state: 'running' }} />}
      >
        {t('operator.alerts.running', { count: open.length })}
      </Anchor>
      {': '}
      {open
        .slice(0, mostShown)
        .map((alert) => `${title(alert)}: ${alert.subject}`)
        .join(' · ')}
    </div>
  );
}
