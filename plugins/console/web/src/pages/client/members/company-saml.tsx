/** A provider of the company that speaks SAML 2.0: what is entered there, and its metadata. */
import { Button, Group, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { CompanySignIn } from '../../../api/types.ts';
import { ErrorState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useWork } from '../../../parts/use-work.ts';
import { Address, Groups, RoleSelect, type Rule, Saved } from './company-provider.tsx';
import type { CompanyChange as Change } from './keys.ts';

interface SamlFormProps {
  readonly of: CompanySignIn;
  readonly change: Change;
}

export function SamlForm({ of, change }: SamlFormProps) {
  const { t } = useTranslation();
  const provider = of.provider?.saml ? of.provider : null;
  const [name, setName] = useState(provider?.name ?? '');
  const [metadata, setMetadata] = useState(provider?.saml?.metadataUrl ?? '');
  const [emailAttribute, setEmailAttribute] = useState(provider?.saml?.emailAttribute ?? '');
  const [role, setRole] = useState(provider?.role ?? ('developer' as const));
  const [rules, setRules] = useState<readonly Rule[]>(provider?.groups ?? []);
  const { busy, problem, run } = useWork((error) => error);
  const save = () => change('POST', '/saml', { name, metadata, emailAttribute, role, groups: rules });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(save);
      }}
    >
      <Stack>
        <Address label={t('client.company.entityId')} text={of.saml.entityId} />
        <Address label={t('client.company.acs')} text={of.saml.acs} />
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          <TextInput
            label={t('shell.word.name')}
            required
            maxLength={60}
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <TextInput
            label={t('client.company.emailAttribute')}
            description={t('client.company.emailAttributeHint')}
            value={emailAttribute}
            onChange={({ currentTarget }) => setEmailAttribute(currentTarget.value)}
          />
          <RoleSelect label={t('client.company.role')} value={role} onChange={setRole} />
        </SimpleGrid>
        <Textarea
          label={t('client.company.metadata')}
          description={t('client.company.metadataHint')}
          required
          rows={4}
          value={metadata}
          onChange={({ currentTarget }) => setMetadata(currentTarget.value)}
        />
        {provider?.saml && <Known of={provider.saml} />}
        <Groups rules={rules} onChange={setRules} />
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          {provider !== null && <Saved change={change} />}
          <Button type="submit" loading={busy}>
            {t('shell.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

type Saml = NonNullable<NonNullable<CompanySignIn['provider']>['saml']>;

function Known({ of }: { readonly of: Saml }) {
  const { t } = useTranslation();
  return (
    <Stack gap={4}>
      <Text fz="sm" className="mono" truncate>
        {of.entityId}
      </Text>
      {of.certificates.map(({ fingerprint, expiresAt }) => (
        <Text key={fingerprint} fz="sm">
          {t('client.company.certificate')} <Time at={expiresAt} />{' '}
          <Text span inherit className="mono" style={{ overflowWrap: 'anywhere' }}>
            {fingerprint}
          </Text>
        </Text>
      ))}
    </Stack>
  );
}
