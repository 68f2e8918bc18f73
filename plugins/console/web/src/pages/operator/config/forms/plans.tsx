/** Plans: price, credit and limits of each, and the plan of new accounts. */
import { Fieldset, SimpleGrid, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useForms } from './context.ts';
import { ChoiceField, ListField, TextField, YesNoField } from './fields.tsx';
import { fileFor, namesAt } from './layers.ts';
import { Picker } from './picker.tsx';

const windowNames = ['5h', 'day', 'week', 'month'] as const;
const limitNames = ['rpm', 'rpd', 'tpm', 'concurrency'] as const;
const same = (value: string) => ({ value, label: value });

export function PlanForm() {
  const { t } = useTranslation();
  const { layers, drafts, entry } = useForms();
  const names = namesAt(layers, ['plans', 'offers']);
  const add = (name: string) => {
    const path = ['plans', 'offers', name];
    const draft = drafts.find((one) => one.file.name === fileFor(layers, path)?.name);
    draft?.addEntry(path, new Map([['price', '0']]));
  };
  return (
    <Stack gap="sm">
      {entry === undefined && (
        <ChoiceField
          path={['plans', 'default']}
          label={t('operator.config.forms.defaultPlan')}
          hint={t('operator.config.forms.defaultPlanHint')}
          choices={names.map(same)}
        />
      )}
      <Picker label={t('shell.word.plan')} names={names} add={t('operator.config.forms.addPlan')} onAdd={add}>
        {(name) => <Plan name={name} />}
      </Picker>
    </Stack>
  );
}

function Plan({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = ['plans', 'offers', name];
  const periods = (['day', 'week', 'month'] as const).map((value) => ({
    value,
    label: t(`client.wallet.window.${value}`),
  }));
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        <TextField path={[...at, 'price']} label={t('operator.config.forms.planPrice')} usual="0" />
        <TextField
          path={[...at, 'duration']}
          label={t('operator.config.forms.duration')}
          usual={t('operator.config.forms.durationUsual')}
        />
        <YesNoField path={[...at, 'renew']} label={t('operator.config.forms.renew')} usual={t('shell.no')} />
        <TextField path={[...at, 'multiplier']} label={t('operator.config.forms.ratio')} usual="1" />
        <TextField path={[...at, 'grant', 'amount']} label={t('operator.config.forms.grantAmount')} usual="–" />
        <ChoiceField path={[...at, 'grant', 'every']} label={t('operator.config.forms.grantEvery')} choices={periods} />
      </SimpleGrid>
      <Fieldset legend={t('operator.config.forms.windows')}>
        <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
          {windowNames.map((one) => (
            <TextField key={one} path={[...at, 'windows', one]} label={t(`client.wallet.window.${one}`)} usual="–" />
          ))}
        </SimpleGrid>
      </Fieldset>
      <Fieldset legend={t('operator.config.forms.limits')}>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
          {limitNames.map((one) => (
            <TextField key={one} path={[...at, 'limits', one]} label={t(`client.keys.${one}`)} usual="–" />
          ))}
        </SimpleGrid>
      </Fieldset>
      <ListField
        path={[...at, 'models']}
        label={t('operator.config.forms.planModels')}
        usual={t('client.wallet.allModels')}
        known={namesAt(layers, ['models'])}
      />
      <ListField
        path={[...at, 'regions']}
        label={t('operator.config.forms.planRegions')}
        usual={t('operator.config.forms.everywhere')}
      />
    </Stack>
  );
}
