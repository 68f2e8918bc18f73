/** Ratios on official prices: the gateway's own, those of plans, those of models. */
import { Fieldset, Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useForms } from './context.ts';
import { TextField } from './fields.tsx';
import { namesAt, valueAt } from './layers.ts';

export function RatioForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const [added, setAdded] = useState<readonly string[]>([]);
  const plugins = valueAt(layers, ['plugins']);
  const withRatios = Array.isArray(plugins) && plugins.includes('multiplier');
  const models = namesAt(layers, ['models']);
  const shown = models.filter(
    (name) => added.includes(name) || valueAt(layers, ['models', name, 'multiplier']) !== undefined,
  );
  return (
    <Stack gap="sm">
      <Text fz="sm" c="dimmed">
        {t('operator.config.forms.ratiosHint')}
      </Text>
      {withRatios && (
        <Fieldset legend={t('operator.config.forms.everywhere')}>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
            <TextField path={['multiplier', 'default']} label={t('operator.config.forms.ratioDefault')} usual="2" />
            <TextField path={['multiplier', 'minimum']} label={t('operator.config.forms.ratioMinimum')} usual="1" />
          </SimpleGrid>
        </Fieldset>
      )}
      <Fieldset legend={t('operator.nav.plans')}>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
          {namesAt(layers, ['plans', 'offers']).map((name) => (
            <TextField key={name} path={['plans', 'offers', name, 'multiplier']} label={name} usual="1" />
          ))}
        </SimpleGrid>
      </Fieldset>
      <Fieldset legend={t('shell.word.models')}>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
          {shown.map((name) => (
            <TextField key={name} path={['models', name, 'multiplier']} label={name} usual="1" />
          ))}
          <Select
            label={t('operator.config.forms.addRatio')}
            data={models.filter((name) => !shown.includes(name))}
            value={null}
            searchable
            onChange={(name) => name !== null && setAdded([...added, name])}
          />
        </SimpleGrid>
      </Fieldset>
    </Stack>
  );
}
