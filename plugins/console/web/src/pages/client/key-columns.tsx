/** The columns of the key list. */
import { ActionIcon, Badge, Box, Code, Group, Menu, Text, Tooltip } from '@mantine/core';
import { IconChartBar, IconDots, IconEdit, IconRefresh, IconTrash } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { KeyRow } from '../../api/types.ts';
import { Meter } from '../../parts/bars.tsx';
import { moneyColumn, textColumn, timeColumn } from '../../parts/columns.tsx';
import { moneyText } from '../../parts/format.ts';
import { ServiceMark } from '../../parts/project-columns.tsx';
import type { Column } from '../../parts/rows-table.tsx';
import { percentOf } from '../operator/sums/usd.ts';

interface Actions {
  readonly onEdit: (row: KeyRow) => void;
  readonly onRotate: (row: KeyRow) => void;
  readonly onRevoke: (row: KeyRow) => void;
}

export function useKeyColumns(actions: Actions): readonly Column<KeyRow>[] {
  const { t } = useTranslation();
  return [
    textColumn('name', t('shell.word.name'), {
      cell: (row) => (
        <Group gap={6} wrap="nowrap" component="span">
          <Text fz="sm" fw={550} span truncate>
            {row.name}
          </Text>
          {row.person === null && <ServiceMark />}
        </Group>
      ),
    }),
    textColumn('prefix', t('shell.word.key'), { cell: (row) => <Secrets row={row} /> }),
    textColumn('project', t('shell.word.project'), { minor: true }),
    { key: 'state', title: t('shell.word.state'), cell: (row) => <State row={row} /> },
    { key: 'terms', title: t('client.keys.terms'), cell: (row) => <Terms row={row} /> },
    timeColumn('lastUsedAt', t('client.keys.lastUsed'), { relative: true, absent: t('shell.never') }),
    timeColumn('createdAt', t('shell.word.created'), { minor: true }),
    moneyColumn('spent', t('client.keys.spent'), (row) => row.spent30d),
    { key: 'actions', title: t('shell.word.actions'), right: true, cell: (row) => <RowMenu row={row} {...actions} /> },
  ];
}

function keyState({ revokedAt, expiresAt }: KeyRow, now: number): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && new Date(expiresAt).getTime() <= now ? 'expired' : 'active';
}

/** The first characters of its secret, and of those before that still work. */
export function Secrets({ row: { prefix, replaced } }: { readonly row: Pick<KeyRow, 'prefix' | 'replaced'> }) {
  const { t, i18n } = useTranslation();
  const time = new Intl.DateTimeFormat(i18n.language, { dateStyle: 'medium', timeStyle: 'short' });
  return (
    <>
      <Code className="nowrap">{`${prefix}…`}</Code>
      {replaced.map((one) => (
        <Text key={one.prefix} fz="xs" c="dimmed">
          {t('client.rotation.until', { prefix: one.prefix, date: time.format(new Date(one.endsAt)) })}
        </Text>
      ))}
    </>
  );
}

function State({ row }: { readonly row: KeyRow }) {
  const { t } = useTranslation();
  const state = keyState(row, Date.now());
  return (
    <Badge size="sm" radius="sm" variant="light" color={state === 'active' ? 'teal' : 'gray'} className="nowrap">
      {t(`client.keys.${state}`)}
    </Badge>
  );
}

/** Bounds of the key in few words, each in full on hover. */
function Terms({ row }: { readonly row: KeyRow }) {
  const { t, i18n } = useTranslation();
  const { models, addresses, limits, cap, expiresAt, images, tags, regions } = row;
  const bounds: { key: string; short: string; long: string }[] = [];
  if (models !== null)
    bounds.push({
      key: 'models',
      short: t('client.keys.someModels', { number: models.length }),
      long: models.join(', '),
    });
  if (cap !== null) {
    const words = `${moneyText(cap.amount, i18n.language)} ${t(`client.keys.every.${cap.every}`)}`;
    bounds.push({ key: 'cap', short: words, long: `${t('client.keys.cap')}: ${words}` });
  }
  if (addresses !== null)
    bounds.push({
      key: 'addresses',
      short: t('client.keys.someAddresses', { number: addresses.length }),
      long: addresses.join(', '),
    });
  if (limits !== null) bounds.push({ key: 'limits', short: t('client.keys.limited'), long: limitWords(limits) });
  if (expiresAt !== null && row.revokedAt === null) {
    const date = new Intl.DateTimeFormat(i18n.language, { dateStyle: 'medium' }).format(new Date(expiresAt));
    bounds.push({ key: 'expires', short: `${t('client.keys.expiresOn')} ${date}`, long: expiresAt });
  }
  if (images === 'wait') {
    const words = t('client.keys.imagesBy.wait');
    bounds.push({ key: 'images', short: words, long: `${t('client.keys.images')}: ${words}` });
  }
  if (tags !== null)
    bounds.push({ key: 'tags', short: tags.join(', '), long: `${t('client.keys.tags')}: ${tags.join(', ')}` });
  if (regions !== null) {
    const names = regions.join(', ');
    bounds.push({ key: 'regions', short: names, long: `${t('client.projects.regions')}: ${names}` });
  }
  const bar = cap !== null && row.capSpent !== null && <CapBar cap={cap} spent={row.capSpent} />;
  if (bounds.length === 0)
    return (
      <Text fz="sm" c="dimmed">
        {t('client.keys.everything')}
      </Text>
    );
  return (
    <Group gap={4} className="terms">
      {bar}
      {bounds.map(({ key, short, long }) => (
        <Tooltip key={key} label={long} multiline maw={320}>
          <Badge size="sm" radius="sm" variant="default" tt="none" fw={500}>
            {short}
          </Badge>
        </Tooltip>
      ))}
    </Group>
  );

  function limitWords(given: NonNullable<KeyRow['limits']>) {
    const names = ['rpm', 'rpd', 'tpm', 'concurrency'] as const;
    return names
      .filter((name) => given[name] !== undefined)
      .map((name) => `${t(`client.keys.${name}`)}: ${given[name]}`)
      .join(', ');
  }
}

/** How much of its cap a key has spent in the running period. */
function CapBar({ cap, spent }: { readonly cap: NonNullable<KeyRow['cap']>; readonly spent: string }) {
  const { t, i18n } = useTranslation();
  const text = (amount: string) => moneyText(amount, i18n.language);
  const words = t('client.wallet.windowWords', { spent: text(spent), limit: text(cap.amount) });
  return (
    <Tooltip label={`${words} · ${t(`client.keys.every.${cap.every}`)}`}>
      <Box w={140} mb={2}>
        <Meter part={percentOf(spent, cap.amount) ?? 100} whole={100} label={words} of="limit" />
      </Box>
    </Tooltip>
  );
}

function RowMenu({ row, onEdit, onRotate, onRevoke }: Actions & { readonly row: KeyRow }) {
  const { t } = useTranslation();
  const live = row.revokedAt === null;
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`${t('shell.more')}: ${row.name}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<IconChartBar size={15} />}
          renderRoot={(props) => <Link {...props} to="/usage" search={{ keyId: row.id }} />}
        >
          {t('client.models.rows')}
        </Menu.Item>
        {live && (
          <Menu.Item leftSection={<IconEdit size={15} />} onClick={() => onEdit(row)}>
            {t('shell.edit')}
          </Menu.Item>
        )}
        {live && !row.prefix.startsWith('jwt:') && (
          <Menu.Item leftSection={<IconRefresh size={15} />} onClick={() => onRotate(row)}>
            {t('client.rotation.rotate')}
          </Menu.Item>
        )}
        {live && (
          <Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => onRevoke(row)}>
            {t('shell.word.revoke')}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
