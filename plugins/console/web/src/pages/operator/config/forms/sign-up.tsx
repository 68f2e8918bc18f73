/** Who may sign up, how long sessions last, and the mail server. */
import { Fieldset, SimpleGrid, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { ChoiceField, TextField, YesNoField } from './fields.tsx';
import { SecretSetting } from './stored-secret.tsx';

export function SignUpForm() {
  const { t } = useTranslation();
  const choices = (['open', 'invite', 'closed'] as const).map((value) => ({
    value,
    label: t(`operator.config.forms.signUpBy.${value}`),
  }));
  const at = ['console'];
  const smtp = [...at, 'smtp'];
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="sm">
        <ChoiceField
          path={[...at, 'sign_up']}
          label={t('operator.config.forms.signUp')}
          usual={t('operator.config.forms.signUpBy.invite')}
          choices={choices}
        />
        <TextField path={[...at, 'name']} label={t('operator.config.forms.gatewayName')} />
        <TextField path={[...at, 'session']} label={t('operator.config.forms.session')} usual="7d" />
        <TextField path={[...at, 'origin']} label={t('operator.config.forms.origin')} usual="https://gateway.example" />
        <YesNoField
          path={[...at, 'public', 'models']}
          label={t('operator.config.forms.publicModels')}
          usual={t('shell.yes')}
        />
        <YesNoField
          path={[...at, 'public', 'status']}
          label={t('operator.config.forms.publicStatus')}
          usual={t('shell.yes')}
        />
      </SimpleGrid>
      <Fieldset legend={t('operator.config.forms.mail')}>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="sm">
          <TextField path={[...smtp, 'host']} label={t('operator.config.forms.mailHost')} />
          <TextField path={[...smtp, 'user']} label={t('operator.config.forms.mailUser')} />
          <TextField path={[...smtp, 'from']} label={t('operator.config.forms.mailFrom')} />
        </SimpleGrid>
        <SecretSetting path={[...smtp, 'password']} label={t('entry.password')} name="mail" />
      </Fieldset>
    </Stack>
  );
}
