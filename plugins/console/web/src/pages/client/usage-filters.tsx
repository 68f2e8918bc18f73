/** What the usage is narrowed by: key, model, result. */
import { Button, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { keysQuery, modelsQuery } from '../../api/models.ts';
import { useSearchState } from '../../parts/search-state.ts';

interface Choice {
  readonly name: 'keyId' | 'model' | 'result';
  readonly label: string;
  readonly placeholder: string;
  readonly data: readonly { readonly value: string; readonly label: string }[];
}

export function UsageFilters() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const keys = useQuery(keysQuery).data?.rows ?? [];
  const models = useQuery(modelsQuery).data?.rows ?? [];
  const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;
  const choices: readonly Choice[] = [
    {
      name: 'keyId',
      label: t('client.usage.key'),
      placeholder: t('client.usage.allKeys'),
      data: keys.map(({ id, name }) => ({ value: id, label: name })),
    },
    {
      name: 'model',
      label: t('client.usage.model'),
      placeholder: t('client.usage.allModels'),
      data: models.map(({ id }) => ({ value: id, label: id })),
    },
    {
      name: 'result',
      label: t('client.usage.result'),
      placeholder: t('client.result.all'),
      data: results.map((value) => ({ value, label: t(`client.result.${value}`) })),
    },
  ];
  return (
    <>
      {choices.map(({ name, label, placeholder, data }) => (
        <Select
          key={name}
          aria-label={label}
          size="xs"
          w={180}
          clearable
          searchable
          placeholder={placeholder}
          data={[...data]}
          value={search[name] ?? null}
          onChange={(value) => change({ [name]: value ?? undefined })}
        />
      ))}
      {choices.some(({ name }) => search[name] !== undefined) && (
        <Button
          size="xs"
          variant="subtle"
          color="gray"
          onClick={() => change({ keyId: undefined, model: undefined, result: undefined })}
        >
          {t('shell.clearFilters')}
        </Button>
      )}
    </>
  );
}
