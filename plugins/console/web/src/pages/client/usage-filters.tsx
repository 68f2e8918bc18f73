/** Filters of the usage: key, person, project, model, result. */
import { Button, Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, type Query } from '../../api/client.ts';
import { modelsQuery } from '../../api/models.ts';
import type { UsageChoices } from '../../api/types.ts';
import { projectChoices } from '../../parts/project.ts';
import { useSearchState } from '../../parts/search-state.ts';

interface Choice {
  readonly name: 'keyId' | 'personId' | 'project' | 'model' | 'result';
  readonly label: string;
  readonly placeholder: string;
  readonly data: readonly { readonly value: string; readonly label: string }[];
}

/** What there are requests of in the span. */
export const useUsageChoices = (span: Query): UsageChoices | undefined =>
  useQuery({
    queryKey: ['usage', 'choices', span],
    queryFn: ({ signal }) => get<UsageChoices>('/usage/choices', span, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  }).data;

export function UsageFilters({ known }: { readonly known: UsageChoices | undefined }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const choices = useChoices(known, search);
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
          data={withChosen(data, search[name])}
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

/** One that an address names stays, though there may be no request of it in this span. */
const withChosen = (data: Choice['data'], chosen: string | undefined) =>
  chosen === undefined || data.some(({ value }) => value === chosen)
    ? [...data]
    : [...data, { value: chosen, label: chosen }];

function useChoices(
  known: UsageChoices | undefined,
  search: Readonly<Record<string, string | undefined>>,
): readonly Choice[] {
  const { t } = useTranslation();
  const { keys = [], projects = [], people = [] } = known ?? {};
  const models = useQuery(modelsQuery).data?.rows ?? [];
  const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;
  return [
    {
      name: 'keyId',
      label: t('shell.word.key'),
      placeholder: t('client.usage.allKeys'),
      data: keys.map(({ id, name }) => ({ value: id, label: name })),
    },
    ...(people.length === 0 && search['personId'] === undefined
      ? []
      : [
          {
            name: 'personId' as const,
            label: t('client.person'),
            placeholder: t('client.everyPerson'),
            data: people.map(({ id, name }) => ({ value: id, label: name })),
          },
        ]),
    ...(projects.length === 0 && search['project'] === undefined
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
