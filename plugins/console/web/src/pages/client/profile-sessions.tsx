/** Where the person is signed in, and ending it there. */
import { Badge, Button, Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { currentSession, listSessions, revokeOtherSessions, revokeSession, type SessionRow } from '../../api/auth.ts';
import { Panel } from '../../parts/page.tsx';
import { type Column, RowsTable } from '../../parts/rows-table.tsx';
import { ErrorState } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';

const sessionsKey = ['sessions'] as const;

export function Sessions() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const sessions = useQuery({ queryKey: sessionsKey, queryFn: listSessions });
  const current = useQuery({ queryKey: [...sessionsKey, 'current'], queryFn: currentSession });
  const own = current.data?.session.id;
  const after = (work: Promise<unknown>) => work.then(() => askAgain(queries, sessionsKey));
  const columns: readonly Column<SessionRow>[] = [
    {
      key: 'device',
      title: t('client.profile.device'),
      cell: (row) => (
        <Group gap="xs">
          <Text fz="sm">{deviceOf(row.userAgent) ?? t('client.profile.unknownDevice')}</Text>
          {row.id === own && (
            <Badge size="sm" radius="sm" variant="light" tt="none">
              {t('client.profile.thisOne')}
            </Badge>
          )}
        </Group>
      ),
    },
    { key: 'address', title: t('client.profile.address'), cell: ({ ipAddress }) => shortAddress(ipAddress) },
    { key: 'since', title: t('client.profile.since'), cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      key: 'end',
      title: t('shell.word.actions'),
      right: true,
      cell: (row) =>
        row.id !== own && (
          <Button size="compact-xs" variant="default" onClick={() => void after(revokeSession(row.token))}>
            {t('client.profile.end')}
          </Button>
        ),
    },
  ];
  return (
    <Panel
      flush
      title={t('client.profile.sessions')}
      hint={t('client.profile.sessionsHint')}
      actions={
        (sessions.data?.length ?? 0) > 1 && (
          <Button size="xs" variant="default" onClick={() => void after(revokeOtherSessions())}>
            {t('client.profile.endOthers')}
          </Button>
        )
      }
    >
      {sessions.isError ? (
        <div className="pad">
          <ErrorState error={sessions.error} onRetry={() => void sessions.refetch()} />
        </div>
      ) : (
        <RowsTable
          label={t('client.profile.sessions')}
          rows={sessions.data}
          columns={columns}
          rowKey={({ id }) => id}
        />
      )}
    </Panel>
  );
}

/** An IPv6 address as people write it: `::1`, not `0000:0000:…:0001`. */
function shortAddress(address: string | null | undefined): string {
  if (!address) return '–';
  if (!address.includes(':') || !URL.canParse(`http://[${address}]`)) return address;
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

/** Browser and system as people name them, from what a browser says of itself. */
function deviceOf(userAgent: string | null | undefined): string | undefined {
  if (!userAgent) return undefined;
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(userAgent)?.[1];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(userAgent)?.[1];
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', 'Mac OS X': 'macOS', CrOS: 'ChromeOS' };
  const parts = [browser, system].filter((part) => part !== undefined).map((part) => names[part] ?? part);
  return parts.length === 0 ? undefined : parts.join(' · ');
}
