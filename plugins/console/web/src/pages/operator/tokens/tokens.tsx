/** Bearer tokens for scripts, each shown once. */
import { Anchor, Button, Code, Group, Text, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { IconApi, IconExternalLink, IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { Page, Panel } from '../../../parts/page.tsx';
import { SecretOnce } from '../../../parts/secret-once.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { type CsvColumn, CsvTable } from '../parts/csv-table.tsx';
import { answerKey, Loaded, useAnswer } from '../parts/load.tsx';
import { toIso } from '../parts/moment-input.ts';
import type { Token } from '../sale-types.ts';

const path = '/admin/tokens';

export default function Tokens() {
  const { t } = useTranslation();
  const acts = useActs();
  return (
    <Page
      title={t('operator.people.tokens.title')}
      hint={
        <>
          {t('operator.people.tokens.intro')}{' '}
          <Anchor href="/console/api/openapi.json" target="_blank" rel="noreferrer" fz="sm" underline="always">
            {t('operator.people.tokens.docs')} <IconExternalLink size={12} aria-hidden />
          </Anchor>
        </>
      }
    >
      {acts ? (
        <TokenList />
      ) : (
        <Panel>
          <EmptyState
            icon={IconApi}
            title={t('operator.people.tokens.onlyOperators')}
            hint={t('operator.people.tokens.onlyOperatorsHint')}
          />
        </Panel>
      )}
    </Page>
  );
}

function TokenList() {
  const { t } = useTranslation();
  const tokens = useAnswer<{ rows: readonly Token[] }>(path);
  const [makes, setMakes] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [revoked, setRevoked] = useState<Token>();
  const columns = useColumns(setRevoked);
  const button = (
    <Button size="xs" leftSection={<IconPlus size={15} />} onClick={() => setMakes(true)}>
      {t('operator.people.tokens.make')}
    </Button>
  );
  return (
    <Panel flush actions={button}>
      <Loaded of={tokens}>
        {({ rows }) => (
          <CsvTable
            label={t('operator.people.tokens.title')}
            rows={rows}
            columns={columns}
            rowKey={({ id }) => id}
            file="tokens"
            empty={
              <EmptyState
                icon={IconApi}
                title={t('operator.people.tokens.empty')}
                hint={t('operator.people.tokens.emptyHint')}
              />
            }
          />
        )}
      </Loaded>
      {makes && <MakeDialog onClose={() => setMakes(false)} onMade={setSecret} />}
      <SecretOnce title={t('operator.people.tokens.shown')} secret={secret} onSaved={() => setSecret(undefined)}>
        <Text fz="sm" c="dimmed">
          {t('operator.people.tokens.use')}
        </Text>
        <Code block className="secret-text">
          {`curl -H "Authorization: Bearer $TOKEN" ${location.origin}/console/api/admin/monitor`}
        </Code>
      </SecretOnce>
      {revoked !== undefined && <RevokeDialog token={revoked} onClose={() => setRevoked(undefined)} />}
    </Panel>
  );
}

function useColumns(onRevoke: (token: Token) => void): CsvColumn<Token>[] {
  const { t } = useTranslation();
  return [
    { key: 'name', title: t('operator.column.name'), cell: ({ name }) => name, plain: ({ name }) => name },
    {
      key: 'prefix',
      title: t('operator.column.prefix'),
      cell: ({ prefix }) => <span className="mono">{prefix}…</span>,
      plain: ({ prefix }) => prefix,
    },
    {
      key: 'createdBy',
      title: t('operator.people.tokens.by'),
      cell: ({ createdBy }) => createdBy,
      plain: ({ createdBy }) => createdBy,
    },
    {
      key: 'lastUsedAt',
      title: t('operator.column.lastUse'),
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} relative absent={t('shell.never')} />,
      plain: ({ lastUsedAt }) => lastUsedAt,
    },
    {
      key: 'expiresAt',
      title: t('operator.column.expires'),
      cell: ({ expiresAt }) => <Time at={expiresAt} absent={t('shell.never')} />,
      plain: ({ expiresAt }) => expiresAt,
    },
    {
      key: 'actions',
      title: t('operator.column.actions'),
      right: true,
      cell: (token) => (
        <Group justify="flex-end">
          <Button size="compact-xs" variant="subtle" color="red" onClick={() => onRevoke(token)}>
            {t('operator.people.tokens.revoke')}
          </Button>
        </Group>
      ),
    },
  ];
}

interface MakeProps {
  readonly onClose: () => void;
  readonly onMade: (token: string) => void;
}

function MakeDialog({ onClose, onMade }: MakeProps) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [expires, setExpires] = useState<string | null>(null);
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.tokens.makeTitle')}
      action={t('shell.create')}
      withReason={false}
      missing={name.trim() === ''}
      stale={[answerKey(path)]}
      act={async () => {
        const made = await send<{ token: string }>('POST', path, { name: name.trim(), expiresAt: toIso(expires) });
        onMade(made.token);
        return undefined;
      }}
    >
      <TextInput
        label={t('operator.people.tokens.name')}
        required
        data-autofocus
        maxLength={100}
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <DateTimePicker
        label={t('operator.people.tokens.expires')}
        description={t('operator.people.tokens.expiresHint')}
        clearable
        minDate={new Date()}
        value={expires}
        onChange={setExpires}
      />
    </Act>
  );
}

function RevokeDialog({ token: { id, name }, onClose }: { readonly token: Token; readonly onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.people.tokens.revokeTitle', { name })}
      text={t('operator.people.tokens.revokeText')}
      action={t('operator.people.tokens.revoke')}
      danger
      withReason={false}
      stale={[answerKey(path)]}
      act={async () => {
        await send('DELETE', `${path}/${encodeURIComponent(id)}`);
        return t('operator.people.tokens.revoked', { name });
      }}
    />
  );
}
