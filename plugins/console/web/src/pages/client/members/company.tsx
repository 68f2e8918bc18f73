/** Sign-in of the company: its domains with their records, and its provider. */
import { Button, Group, Select, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../../../api/client.ts';
import type { CompanySignIn } from '../../../api/types.ts';
import { Confirm } from '../../../parts/confirm.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { Directory } from './company-directory.tsx';
import { ProviderForm } from './company-provider.tsx';
import { Required } from './company-required.tsx';
import { SamlForm } from './company-saml.tsx';
import type { CompanyChange as Change } from './keys.ts';
import '../../../parts/company-texts.ts';

const key = ['members', 'sign-in'] as const;
type Domain = CompanySignIn['domains'][number];

export default function Company() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const found = useQuery({ queryKey: key, queryFn: () => get<CompanySignIn>('/members/sign-in') });
  const change: Change = async (method, path, body) => {
    const after = await send<CompanySignIn>(method, `/members/sign-in${path}`, body);
    queries.setQueryData(key, after);
    notifications.show({ message: t('shell.done'), color: 'teal' });
  };
  if (found.isError) return <ErrorState error={found.error} onRetry={() => void found.refetch()} />;
  if (found.data === undefined) return <Skeleton height={320} />;
  if (!found.data.offered) return <Text fz="sm">{t('client.company.notOffered')}</Text>;
  return (
    <Stack>
      <Text fz="sm">{t('client.company.hint')}</Text>
      <Domains rows={found.data.domains} change={change} />
      <Panel title={t('client.company.provider')}>
        <ProviderByKind of={found.data} change={change} />
      </Panel>
      {found.data.provider !== null && <Required required={found.data.required} change={change} />}
      <Directory of={found.data.directory} onChanged={() => found.refetch()} />
    </Stack>
  );
}

interface ProviderProps {
  readonly of: CompanySignIn;
  readonly change: Change;
}

function ProviderByKind({ of, change }: ProviderProps) {
  const { t } = useTranslation();
  const [kind, setKind] = useState(of.provider?.saml ? 'saml' : 'oidc');
  const kinds = [
    { value: 'oidc', label: 'OpenID Connect' },
    { value: 'saml', label: 'SAML 2.0' },
  ];
  return (
    <Stack>
      <Select
        label={t('client.company.protocol')}
        allowDeselect={false}
        maw={260}
        data={kinds}
        value={kind}
        onChange={(value) => setKind(value!)}
      />
      {kind === 'saml' ? <SamlForm of={of} change={change} /> : <ProviderForm of={of} change={change} />}
    </Stack>
  );
}

interface DomainsProps {
  readonly rows: readonly Domain[];
  readonly change: Change;
}

function Domains({ rows, change }: DomainsProps) {
  const { t } = useTranslation();
  const [removed, setRemoved] = useState<Domain>();
  const columns: readonly Column<Domain>[] = [
    { key: 'domain', title: t('client.company.domain'), cell: ({ domain }) => domain, plain: ({ domain }) => domain },
    {
      key: 'state',
      title: t('shell.word.state'),
      cell: (row) => <State of={row} />,
    },
    {
      key: 'name',
      title: t('client.company.recordName'),
      cell: ({ record }) => <Copied text={record.name} label={t('client.company.recordName')} />,
    },
    {
      key: 'value',
      title: t('client.company.recordValue'),
      cell: ({ record }) => <Copied text={record.value} label={t('client.company.recordValue')} />,
    },
    {
      key: 'actions',
      title: t('shell.word.actions'),
      right: true,
      cell: (row) => <DomainActions row={row} change={change} onRemove={setRemoved} />,
    },
  ];
  return (
    <Panel flush title={t('client.company.domains')}>
      <Text fz="sm" px="md" pb="sm">
        {t('client.company.domainsHint')}
      </Text>
      {rows.length > 0 && (
        <RowsTable
          label={t('client.company.domains')}
          rows={rows}
          columns={columns}
          rowKey={({ domain }) => domain}
          whole
        />
      )}
      <AddDomain change={change} />
      <Confirm
        opened={removed !== undefined}
        title={t('client.company.removeTitle', { domain: removed?.domain ?? '' })}
        action={t('client.company.remove')}
        danger
        onConfirm={() => change('DELETE', `/domains/${encodeURIComponent(removed!.domain)}`)}
        onClose={() => setRemoved(undefined)}
      >
        {t('client.company.removeWords')}
      </Confirm>
    </Panel>
  );
}

function State({ of: { verifiedAt, lapsesAt } }: { readonly of: Domain }) {
  const { t } = useTranslation();
  if (lapsesAt === null) return t(verifiedAt === null ? 'client.company.notVerified' : 'client.company.verified');
  return (
    <>
      {t('client.company.recordGone')} <Time at={lapsesAt} />
    </>
  );
}

function Copied({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <Text inherit className="mono" truncate maw={260}>
        {text}
      </Text>
      <CopyButton text={text} label={label} />
    </Group>
  );
}

interface DomainActionsProps {
  readonly row: Domain;
  readonly change: Change;
  readonly onRemove: (row: Domain) => void;
}

function DomainActions({ row, change, onRemove }: DomainActionsProps) {
  const { t } = useTranslation();
  const { domain, verifiedAt, lapsesAt } = row;
  const { busy, run } = useWork((error) => {
    notifications.show({ message: error instanceof Error ? error.message : String(error), color: 'red' });
    return undefined;
  });
  return (
    <Group justify="flex-end" gap={4} wrap="nowrap">
      {(verifiedAt === null || lapsesAt !== null) && (
        <Button
          size="compact-xs"
          variant="subtle"
          loading={busy}
          aria-label={t('client.company.checkNamed', { domain })}
          onClick={() => void run(() => change('POST', `/domains/${encodeURIComponent(domain)}/verify`))}
        >
          {t('client.company.check')}
        </Button>
      )}
      <Button
        size="compact-xs"
        variant="subtle"
        color="red"
        aria-label={t('client.company.removeNamed', { domain })}
        onClick={() => onRemove(row)}
      >
        {t('client.company.remove')}
      </Button>
    </Group>
  );
}

function AddDomain({ change }: { readonly change: Change }) {
  const { t } = useTranslation();
  const [domain, setDomain] = useState('');
  const { busy, problem, run } = useWork((error) => error);
  const add = async () => {
    await change('POST', '/domains', { domain });
    setDomain('');
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(add);
      }}
    >
      <Stack p="md" gap="xs">
        <Group align="flex-end">
          <TextInput
            label={t('client.company.domain')}
            placeholder="acme.example"
            value={domain}
            maxLength={190}
            onChange={({ currentTarget }) => setDomain(currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={busy} disabled={domain.trim() === ''}>
            {t('client.company.add')}
          </Button>
        </Group>
        {problem !== undefined && <ErrorState error={problem} />}
      </Stack>
    </form>
  );
}
