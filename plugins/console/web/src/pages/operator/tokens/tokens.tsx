/** Bearer tokens for scripts, each shown once. */

import { Anchor, Button, Code, Select, Text, TextInput } from '@mantine/core';
import { IconApi, IconExternalLink, IconPlus } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { prefixColumn, textColumn, timeColumn, useDangerColumn } from '../../../parts/columns.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { SecretOnce } from '../../../parts/secret-once.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { answerKey, useAnswer } from '../parts/load.tsx';
import { MomentField, toIso } from '../parts/moment-field.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { Token } from '../sale-types.ts';

const path = '/admin/tokens';
const roles: readonly Token['role'][] = ['operator', 'auditor'];

export default function Tokens() {
  const { t } = useTranslation();
  if (useActs()) return <TokenList hint={<Intro />} />;
  return (
    <Page title={t('operator.people.tokens.title')} hint={<Intro />}>
      <Panel>
        <EmptyState
          icon={IconApi}
          title={t('operator.people.tokens.onlyOperators')}
          hint={t('operator.people.tokens.onlyOperatorsHint')}
        />
      </Panel>
    </Page>
  );
}

function Intro() {
  const { t } = useTranslation();
  return (
    <>
      {t('operator.people.tokens.intro')}{' '}
      <Anchor href="/console/api/openapi.json" target="_blank" rel="noreferrer" fz="sm" underline="always">
        {t('operator.people.tokens.docs')} <IconExternalLink size={12} aria-hidden />
      </Anchor>
    </>
  );
}

function TokenList({ hint }: { readonly hint: ReactNode }) {
  const { t } = useTranslation();
  const tokens = useAnswer<{ rows: readonly Token[] }>(path);
  const [makes, setMakes] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [revoked, setRevoked] = useState<Token>();
  return (
    <ResourcePage
      texts="operator.people.tokens"
      icon={IconApi}
      hint={hint}
      source={{ answer: tokens, file: 'tokens' }}
      columns={useColumns(setRevoked)}
      panelActions={
        <Button size="xs" leftSection={<IconPlus size={15} />} onClick={() => setMakes(true)}>
          {t('operator.people.tokens.make')}
        </Button>
      }
    >
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
    </ResourcePage>
  );
}

function useColumns(onRevoke: (token: Token) => void): Column<Token>[] {
  const { t } = useTranslation();
  return [
    textColumn('name', t('shell.word.name')),
    prefixColumn(t('operator.column.prefix')),
    textColumn('role', t('operator.people.people.roleTitleShort'), {
      cell: ({ role }) => t(`operator.people.people.role.${role}`),
    }),
    textColumn('createdBy', t('operator.people.tokens.by')),
    timeColumn('lastUsedAt', t('operator.column.lastUse'), { relative: true, absent: t('shell.never') }),
    timeColumn('expiresAt', t('operator.column.expires'), { absent: t('shell.never') }),
    useDangerColumn(t('shell.word.revoke'), onRevoke),
  ];
}

function MakeDialog({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (token: string) => void }) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Token['role']>('operator');
  const [expires, setExpires] = useState('');
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
        const wanted = { name: name.trim(), role, expiresAt: toIso(expires) };
        const made = await send<{ token: string }>('POST', path, wanted);
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
      <Select
        label={t('operator.people.people.roleTitleShort')}
        description={t(`operator.people.people.roleHint.${role}`)}
        data={roles.map((value) => ({ value, label: t(`operator.people.people.role.${value}`) }))}
        allowDeselect={false}
        value={role}
        onChange={(value) => setRole((value ?? 'operator') as Token['role'])}
      />
      <MomentField
        label={t('operator.people.tokens.expires')}
        description={t('operator.people.tokens.expiresHint')}
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
      action={t('shell.word.revoke')}
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
