/** What two configurations differ in, file by file. */
import { Stack, Text, Title } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { Waiting } from '../../../parts/states.tsx';
import type { ConfigDifference } from '../sale-types.ts';

const YamlDiff = lazy(() => import('./yaml-diff.tsx'));

export function Differences({ files }: Pick<ConfigDifference, 'files'>) {
  const { t } = useTranslation();
  if (files.length === 0) return <Text fz="sm">{t('operator.config.history.same')}</Text>;
  return (
    <Stack gap="md">
      {files.map(({ path, before, after }) => (
        <div key={path}>
          <Title order={3} fz="sm" fw={550} className="mono wrap-any" mb={4}>
            {path}
            {before === null && ` · ${t('operator.config.history.newFile')}`}
            {after === null && ` · ${t('operator.config.history.noFile')}`}
          </Title>
          <Suspense fallback={<Waiting height={160} />}>
            <YamlDiff before={before ?? ''} after={after ?? ''} label={`${t('operator.config.diff')}: ${path}`} />
          </Suspense>
        </div>
      ))}
    </Stack>
  );
}
