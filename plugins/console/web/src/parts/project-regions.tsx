/** Regions in which calls of a key or a project may be processed: as they are chosen, and shown where there are any. */
import { Badge, TagsInput, Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import './project-texts.ts';

export function RegionsMark({ of: regions }: { readonly of: readonly string[] }) {
  const { t } = useTranslation();
  const names = regions.join(', ');
  return (
    <Tooltip label={`${t('client.projects.regions')}: ${names}`} multiline maw={320}>
      <Badge size="xs" radius="sm" variant="default" tt="none" fw={500}>
        {names}
      </Badge>
    </Tooltip>
  );
}

interface RegionsFieldProps {
  readonly value?: string[];
  readonly error?: ReactNode;
  readonly onChange: (regions: string[]) => void;
}

export function RegionsField({ value = [], error, onChange }: RegionsFieldProps) {
  const { t } = useTranslation();
  return (
    <TagsInput
      label={t('client.projects.regions')}
      description={t('client.projects.regionsHint')}
      placeholder={value.length === 0 ? t('client.projects.anywhere') : ''}
      splitChars={[',', ' ']}
      maxTags={20}
      acceptValueOnBlur
      value={value}
      error={error}
      onChange={(regions) => onChange(regions.map((region) => region.toLowerCase()))}
    />
  );
}
