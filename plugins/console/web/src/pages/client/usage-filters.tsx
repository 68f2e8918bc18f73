/** What the usage is narrowed by: period, key, model, result. */
import { Button, Group, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { modelsQuery } from '../../api/models.ts';
import type { KeyRow, Page } from '../../api/types.ts';
import { useSearchState } from '../../parts/search-state.ts';
import { isPeriod, periods } from './period.ts';

export function UsageFilters() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const keys = useQuery({ queryKey: ['keys', 'all'], queryFn: () => get<Page<KeyRow>>('/keys', { limit: 200 }) });
  const models = useQuery(modelsQuery);
  const period = isPeriod(search['period']) ? search['period'] : '30d';
  const narrowed = ['keyId', 'model', 'result'].some((name) => search[name] !== undefined);
  return (
    <Group gap="xs" align="flex-end" className="filters">
      <Select
        label={t('client.usage.period')}
        size="xs"
        w={150}
        allowDeselect={false}
        data={periods.map((value) => ({ value, label: t(`client.usage.periods.${value}`) }))}
        value={period}
        onChange={(value) => change({ period: value ?? undefined, from: undefined, until: undefined })}
      />
      {period === 'custom' && <Custom />}
      <Select
        label={t('client.usage.key')}
        size="xs"
        w={160}
        clearable
        searchable
        placeholder={t('client.usage.allKeys')}
        data={(keys.data?.rows ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={search['keyId'] ?? null}
        onChange={(keyId) => change({ keyId: keyId ?? undefined })}
      />
      <Select
        label={t('client.usage.model')}
        size="xs"
        w={190}
        clearable
        searchable
        placeholder={t('client.usage.allModels')}
        data={(models.data?.rows ?? []).map(({ id }) => id)}
        value={search['model'] ?? null}
        onChange={(model) => change({ model: model ?? undefined })}
      />
      <ResultFilter />
      {narrowed && (
        <Button
          size="xs"
          variant="subtle"
          color="gray"
          onClick={() => change({ keyId: undefined, model: undefined, result: undefined })}
        >
          {t('shell.clearFilters')}
        </Button>
      )}
    </Group>
  );
}

function Custom() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  return (
    <>
      {(['from', 'until'] as const).map((name) => (
        <TextInput
          key={name}
          type="datetime-local"
          size="xs"
          label={t(`client.usage.${name}`)}
          value={search[name] ?? ''}
          onChange={({ currentTarget }) => change({ [name]: currentTarget.value })}
        />
      ))}
    </>
  );
}

function ResultFilter() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  return (
    <Select
      label={t('client.usage.result')}
      size="xs"
      w={140}
      clearable
      placeholder={t('client.result.all')}
      data={(['ok', 'client_error', 'upstream_error', 'left'] as const).map((value) => ({
        value,
        label: t(`client.result.${value}`),
      }))}
      value={search['result'] ?? null}
      onChange={(result) => change({ result: result ?? undefined })}
    />
  );
}
