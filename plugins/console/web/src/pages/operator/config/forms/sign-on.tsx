/** Sign-in by providers: each one's settings, its address to register, and what holds for the mail domains of its people. */
import { Alert, Fieldset, SimpleGrid, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { ClaimRules } from './claim-rules.tsx';
import { useForms } from './context.ts';
import { ChoiceField, ListField, TextField } from './fields.tsx';
import { fileFor, namesAt, valueAt } from './layers.ts';
import { Remove } from './models/tiers.tsx';
import { Picker } from './picker.tsx';
import { OneAddress, Providers } from './providers.tsx';
import { SecretSetting } from './stored-secret.tsx';

const providersAt = ['console', 'oidc'];
const usualScopes = 'openid, email, profile';

export function SignOnForm() {
  const { t } = useTranslation();
  const { layers, drafts } = useForms();
  const names = namesAt(layers, providersAt);
  const isList = names.length === 0 && valueAt(layers, providersAt) !== undefined;
  const add = (id: string) => {
    const path = [...providersAt, id];
    const draft = drafts.find((one) => one.file.name === fileFor(layers, path)?.name);
    draft?.addEntry(path, new Map([['name', id]]));
  };
  return (
    <Stack gap="sm">
      <TextField
        path={['console', 'origin']}
        label={t('operator.config.forms.origin')}
        hint={t('operator.config.forms.originHint')}
        usual="https://gateway.example"
      />
      {isList ? (
        <Alert color="yellow" variant="light">
          {t('operator.config.forms.providerList')}
        </Alert>
      ) : (
        <Picker
          label={t('operator.config.forms.provider')}
          names={names}
          add={t('operator.config.forms.addProvider')}
          onAdd={add}
        >
          {(id) => <Provider id={id} />}
        </Picker>
      )}
      <Providers />
    </Stack>
  );
}

function Provider({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = [...providersAt, id];
  const origin = valueAt(layers, ['console', 'origin']);
  const shown = typeof origin === 'string' && /^https?:/.test(origin) ? origin : window.location.origin;
  const domains = [valueAt(layers, [...at, 'domains']) ?? []].flat().filter((one) => typeof one === 'string');
  const ends = (['console', 'provider'] as const).map((value) => ({
    value,
    label: t(`operator.config.forms.signOutAt.${value}`),
  }));
  return (
    <Stack gap="sm">
      <OneAddress label={t('operator.config.forms.redirectUri')} address={`${shown}/console/api/auth/callback/${id}`} />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <TextField path={[...at, 'name']} label={t('shell.word.name')} />
        <TextField
          path={[...at, 'issuer']}
          label={t('operator.config.forms.issuer')}
          usual="https://login.acme.example"
        />
        <TextField path={[...at, 'client_id']} label={t('operator.config.forms.clientId')} />
        <ListField path={[...at, 'scopes']} label={t('operator.config.forms.scopes')} usual={usualScopes} />
        <ListField
          path={[...at, 'domains']}
          label={t('operator.config.forms.mailDomains')}
          hint={t('operator.config.forms.mailDomainsHint')}
          usual="acme.example"
        />
        <TextField
          path={[...at, 'verified_claim']}
          label={t('operator.config.forms.verifiedClaim')}
          usual="email_verified"
        />
        <ChoiceField
          path={[...at, 'sign_out']}
          label={t('operator.config.forms.signOutEnds')}
          usual={t('operator.config.forms.signOutAt.console')}
          choices={ends}
        />
      </SimpleGrid>
      <SecretSetting
        path={[...at, 'client_secret']}
        label={t('operator.config.forms.clientSecret')}
        name={`sign-in-${id}`}
      />
      <ClaimRules path={[...at, 'roles']} gives="role" />
      <ClaimRules path={[...at, 'plans']} gives="plan" />
      {domains.map((domain) => (
        <Domain key={domain} domain={domain} />
      ))}
      <Remove path={at} label={t('operator.alerts.remove', { name: id })} />
    </Stack>
  );
}

function Domain({ domain }: { readonly domain: string }) {
  const { t } = useTranslation();
  const at = ['console', 'domains', domain];
  const policies = (['open', 'invite', 'closed'] as const).map((value) => ({
    value,
    label: t(`operator.config.forms.signUpBy.${value}`),
  }));
  const passwords = (['on', 'off'] as const).map((value) => ({
    value,
    label: t(`operator.config.forms.passwordsAre.${value}`),
  }));
  return (
    <Fieldset legend={domain}>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <ChoiceField
          path={[...at, 'passwords']}
          label={t('operator.config.forms.passwords')}
          usual={t('operator.config.forms.passwordsAre.on')}
          choices={passwords}
        />
        <ChoiceField
          path={[...at, 'sign_up']}
          label={t('operator.config.forms.signUp')}
          usual={t('operator.config.forms.signUpBy.open')}
          choices={policies}
        />
      </SimpleGrid>
    </Fieldset>
  );
}
