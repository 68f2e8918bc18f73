/** Every request that came, narrowed by the address bar. */

import { ActionIcon, TextInput } from '@mantine/core';
import { IconArrowRight } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { FindingFilters, findingQuery } from '../../../parts/finding-filters.tsx';
import { Page } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { SpanPicker, useSpan } from '../../../parts/span.tsx';
import { Steady } from '../../../parts/steady.tsx';
import { TextFilter } from '../parts/filters.tsx';
import { ProjectFilter } from '../parts/projects.tsx';
import { RecordButton, RunningRecordings } from './recordings.tsx';
import { RequestList } from './request-table.tsx';
import { ResultFilter } from './result-filter.tsx';
import { AccountFilter, PersonFilter, SeenFilter } from './seen-filters.tsx';

const spanNames = ['1h', '24h', '7d', '30d', '90d'] as const;

export default function Requests() {
  const { t } = useTranslation();
  const span = useSpan('24h');
  const [search] = useSearchState();
  const withAccounts = has(useMe(), 'accounts');
  const names = [
    'model',
    'provider',
    'operation',
    'accountId',
    'keyId',
    'personId',
    'project',
    'result',
    'cause',
  ] as const;
  const filters = Object.fromEntries(names.map((name) => [name, search[name]]));
  return (
    <Page
      title={t('operator.traffic.requests.title')}
      hint={t('operator.traffic.requests.intro')}
      actions={
        <>
          <RecordButton />
          <Steady>
            <SpanPicker names={spanNames} otherwise="24h" />
          </Steady>
        </>
      }
    >
      <RunningRecordings />
      <Steady>
        <RequestList
          query={{ ...span.query, ...filters, ...findingQuery(search) }}
          filters={
            <>
              <ResultFilter />
              <FindingFilters />
              <SeenFilter name="model" label={t('shell.word.model')} span={span.query} />
              <SeenFilter name="provider" label={t('shell.word.provider')} span={span.query} />
              <SeenFilter name="operation" label={t('shell.word.operation')} span={span.query} />
              {withAccounts && <AccountFilter />}
              <PersonFilter />
              <ProjectFilter />
              {search['keyId'] !== undefined && (
                <TextFilter name="keyId" label={t('operator.traffic.requests.keyId')} />
              )}
              {search['cause'] !== undefined && <TextFilter name="cause" label={t('operator.traffic.causes.cause')} />}
              <OpenById />
            </>
          }
        />
      </Steady>
    </Page>
  );
}

function OpenById() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [id, setId] = useState('');
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim() !== '') void navigate({ to: `/admin/requests/${encodeURIComponent(id.trim())}` });
  };
  return (
    <form onSubmit={open}>
      <TextInput
        size="xs"
        w={190}
        aria-label={t('client.usage.requestId')}
        placeholder={t('client.usage.requestId')}
        value={id}
        onChange={({ currentTarget }) => setId(currentTarget.value)}
        rightSection={
          <ActionIcon type="submit" size="sm" variant="subtle" aria-label={t('shell.open')}>
            <IconArrowRight size={14} />
          </ActionIcon>
        }
      />
    </form>
  );
}
