/** Models: where each is served, its sizes, prices with their tiers, and the operator's own cost. */

import { Alert, SimpleGrid, Stack } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { modelKinds } from '../../../../../../../../common/domain/models.ts';
import { Waiting } from '../../../../../parts/states.tsx';
import { useForms } from '../context.ts';
import { ChoiceField, TextField } from '../fields.tsx';
import { namesAt, valueAt } from '../layers.ts';
import { Picker } from '../picker.tsx';
import { Example } from './example.tsx';
import { kindOf, sizesOf } from './model-kinds.ts';
import { PriceSheet } from './price-sheet.tsx';
import { TargetField } from './target-field.tsx';

const NewModel = lazy(() => import('./new-model.tsx'));

export function ModelForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const names = namesAt(layers, ['models']);
  return (
    <Picker
      label={t('shell.word.model')}
      names={names}
      add={t('operator.config.forms.addModel')}
      form={(onDone) => (
        <Suspense fallback={<Waiting height={420} />}>
          <NewModel names={names} onDone={onDone} />
        </Suspense>
      )}
    >
      {(name) => <Model name={name} />}
    </Picker>
  );
}

function Model({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = ['models', name];
  const kind = kindOf(valueAt(layers, [...at, 'kind']));
  const isPriced = valueAt(layers, [...at, 'price']) !== undefined;
  return (
    <Stack gap="sm">
      {!isPriced && (
        <Alert color="yellow" variant="light">
          {t('operator.config.forms.unpriced')}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        <TextField path={[...at, 'display_name']} label={t('operator.config.forms.displayName')} usual={name} />
        <TextField path={[...at, 'owned_by']} label={t('operator.config.forms.owner')} />
        <ChoiceField
          path={[...at, 'kind']}
          label={t('shell.word.kind')}
          usual={t('client.models.kinds.chat')}
          choices={modelKinds.map((one) => ({ value: one, label: t(`client.models.kinds.${one}`) }))}
        />
        {sizesOf(kind).map((one) => (
          <TextField key={one} path={[...at, one]} label={t(`operator.config.forms.size.${one}`)} usual="–" />
        ))}
      </SimpleGrid>
      <TargetField path={[...at, 'targets']} />
      <PriceSheet at={[...at, 'price']} kind={kind} legend={t('operator.config.forms.price')} />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextField
          path={[...at, 'batch']}
          label={t('operator.config.forms.batch')}
          hint={t('operator.config.forms.batchHint')}
          usual="1"
        />
        <TextField path={[...at, 'multiplier']} label={t('operator.config.forms.ratio')} usual="1" />
      </SimpleGrid>
      <Example at={at} kind={kind} />
      <PriceSheet at={[...at, 'cost']} kind={kind} legend={t('operator.config.forms.cost')} />
    </Stack>
  );
}
