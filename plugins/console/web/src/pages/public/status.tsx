/** How the models have worked in the last two days, by hours of real traffic. Public. */
import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { statusQuery } from '../../api/models.ts';
import type { PublicStatus } from '../../api/types.ts';
import { Panel } from '../../parts/page.tsx';
import { EmptyState, ErrorState, Waiting } from '../../parts/states.tsx';
import { UptimeStrip, useSharePercent } from '../../parts/uptime.tsx';
import { PublicFrame } from './public-frame.tsx';

export default function Status() {
  const { t } = useTranslation();
  const status = useQuery(statusQuery);
  return (
    <PublicFrame title={t('entry.status.title')}>
      <Stack gap="md">
        <div>
          <Title order={1} fz="xl">
            {t('entry.status.title')}
          </Title>
          <Text c="dimmed" fz="sm">
            {t('entry.status.intro')}
          </Text>
        </div>
        {status.isPending && <Waiting height={320} />}
        {status.isError && <ErrorState error={status.error} onRetry={() => void status.refetch()} />}
        {status.data !== undefined && <Models status={status.data} />}
      </Stack>
    </PublicFrame>
  );
}

function Models({ status }: { readonly status: PublicStatus }) {
  const { t } = useTranslation();
  const percent = useSharePercent();
  const used = status.rows.filter(({ uptime }) => uptime !== null);
  const failing = used.filter((row) => row.failing);
  if (used.length === 0)
    return (
      <Panel>
        <EmptyState title={t('entry.status.none')} hint={t('entry.status.noneHint')} />
      </Panel>
    );
  return (
    <>
      <div className="banner" data-tone={failing.length === 0 ? 'good' : 'bad'} role="status">
        {failing.length === 0
          ? t('entry.status.allWell')
          : t('entry.status.failing', { models: failing.map(({ displayName }) => displayName).join(', ') })}
      </div>
      <Panel flush>
        {used.map((row) => (
          <Group key={row.id} className="status-row" justify="space-between" gap="xs">
            <Text fz="sm" fw={550} className="status-name" truncate>
              {row.displayName}
            </Text>
            <UptimeStrip of={row} at={status.at} />
            <Text fz="sm" className="number status-share">
              {percent(row.uptime!)}
            </Text>
          </Group>
        ))}
      </Panel>
      <Text fz="xs" c="dimmed">
        {t('entry.status.legend')}
      </Text>
    </>
  );
}
