/** Filters of the usage: key, model, result. */
import { Button, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { keysQuery, modelsQuery, useOwnProjects } from '../../api/models.ts';
import { projectChoices } from '../../parts/project.ts';
import { useSearchState } from '../../parts/search-state.ts';

interface Choice {
  readonly name: 'keyId' | 'project' | 'model' | 'result';
  readonly label: string;
  readonly placeholder: string;
  readonly data: readonly { readonly value: string; readonly label: string }[];
}

export function UsageFilters() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const choices = useChoices();
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
          onClick={() => change(Object.fromEntries(choices.map(({ name }) => [name, undefined])))}
        >
          {t('shell.clearFilters')}
        </Button>
      )}
    </>
  );
}

function useChoices(): readonly Choice[] {
  const { t } = useTranslation();
  const keys = useQuery(keysQuery).data?.rows ?? [];
  const projects = useOwnProjects();
  const models = useQuery(modelsQuery).data?.rows ?? [];
  const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;
  return [
    {
      name: 'keyId',
      label: t('shell.word.key'),
      placeholder: t('client.usage.allKeys'),
      data: keys.map(({ id, name }) => ({ value: id, label: name })),
    },
    ...(projects.length === 0
      ? []
      : [
          {
            name: 'project' as const,
            label: t('shell.word.project'),
            placeholder: t('shell.project.all'),
            data: projectChoices(projects, t('shell.project.none')),
          },
        ]),
    {
      name: 'model',
      label: t('shell.word.model'),
      placeholder: t('client.usage.allModels'),
      data: models.map(({ id }) => ({ value: id, label: id })),
    },
    {
      name: 'result',
      label: t('shell.word.result'),
      placeholder: t('client.result.all'),
      data: results.map((value) => ({ value, label: t(`client.result.${value}`) })),
    },
  ];
}
