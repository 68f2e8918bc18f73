/** The provider of a company: what it is set to, its test, and removing it. */
import { ActionIcon, Button, Fieldset, Group, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { CompanySignIn, MemberRole } from '../../../api/types.ts';
import { Confirm } from '../../../parts/confirm.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';
import type { CompanyChange as Change } from './keys.ts';

type Provider = NonNullable<CompanySignIn['provider']>;
export type Rule = Provider['groups'][number];
type GivenRole = Provider['role'];
const roles = ['admin', 'billing', 'developer', 'viewer'] as const satisfies readonly MemberRole[];
const empty: Omit<Provider, 'scopes' | 'groups' | 'saml'> = {
  ...{ name: '', issuer: '', clientId: '', verifiedClaim: 'email_verified', role: 'developer' },
};

interface ProviderFormProps {
  readonly of: CompanySignIn;
  readonly change: Change;
}

export function ProviderForm({ of, change }: ProviderFormProps) {
  const { t } = useTranslation();
  const provider = of.provider?.saml === null ? of.provider : null;
  const [wanted, setWanted] = useState(() => ({ ...empty, ...provider }));
  const [secret, setSecret] = useState('');
  const [rules, setRules] = useState<readonly Rule[]>(provider?.groups ?? []);
  const { busy, problem, run } = useWork((error) => error);
  const save = async () => {
    const { name, issuer, clientId, verifiedClaim, role } = wanted;
    const body = {
      name,
      issuer,
      clientId,
      verifiedClaim,
      role,
      groups: rules,
      ...(secret === '' ? {} : { clientSecret: secret }),
    };
    await change('POST', '/provider', body);
    setSecret('');
  };
  const field = (name: 'name' | 'issuer' | 'clientId' | 'verifiedClaim', label: string, more: object = {}) => (
    <TextInput
      label={label}
      required
      value={wanted[name]}
      onChange={({ currentTarget }) => setWanted({ ...wanted, [name]: currentTarget.value })}
      {...more}
    />
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(save);
      }}
    >
      <Stack>
        <Address label={t('client.company.redirectUri')} text={of.redirectUri} />
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {field('name', t('shell.word.name'), { maxLength: 60 })}
          {field('issuer', t('client.company.issuer'), { placeholder: 'https://login.acme.example' })}
          {field('clientId', t('client.company.clientId'))}
          <TextInput
            type="password"
            autoComplete="off"
            label={t('client.company.clientSecret')}
            {...(provider === null ? { required: true } : { description: t('client.company.secretKept') })}
            value={secret}
            onChange={({ currentTarget }) => setSecret(currentTarget.value)}
          />
          {field('verifiedClaim', t('client.company.verifiedClaim'), {
            description: t('client.company.verifiedClaimHint'),
          })}
          <RoleSelect
            label={t('client.company.role')}
            value={wanted.role}
            onChange={(role) => setWanted({ ...wanted, role })}
          />
        </SimpleGrid>
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

interface AddressProps {
  readonly label: string;
  readonly text: string;
}

/** What is entered at the provider. */
export function Address({ label, text }: AddressProps) {
  return (
    <Group gap={6} wrap="nowrap">
      <Text fz="sm">{label}</Text>
      <Text fz="sm" className="mono" truncate>
        {text}
      </Text>
      <CopyButton text={text} label={label} />
    </Group>
  );
}

interface RoleSelectProps {
  readonly label: string;
  readonly value: GivenRole;
  readonly onChange: (role: GivenRole) => void;
}

export function RoleSelect({ label, value, onChange }: RoleSelectProps) {
  const { t } = useTranslation();
  return (
    <Select
      label={label}
      allowDeselect={false}
      data={roles.map((role) => ({ value: role, label: t(`client.members.role.${role}`) }))}
      value={value}
      onChange={(role) => onChange(role as GivenRole)}
    />
  );
}

interface GroupsProps {
  readonly rules: readonly Rule[];
  readonly onChange: (rules: readonly Rule[]) => void;
}

export function Groups({ rules, onChange }: GroupsProps) {
  const { t } = useTranslation();
  const set = (at: number, part: Partial<Rule>) =>
    onChange(rules.map((rule, index) => (index === at ? { ...rule, ...part } : rule)));
  return (
    <Fieldset legend={t('client.company.groups')}>
      <Stack gap="xs">
        <Text fz="sm">{t('client.company.groupsHint')}</Text>
        {rules.map((rule, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rules have no name, and their order is what counts
          <Group key={at} align="flex-end" gap="xs">
            <TextInput
              label={t('client.company.claim')}
              required
              value={[rule.claim].flat().join('.')}
              onChange={({ currentTarget }) => set(at, { claim: currentTarget.value })}
            />
            <TextInput
              label={t('client.company.value')}
              required
              value={rule.value}
              onChange={({ currentTarget }) => set(at, { value: currentTarget.value })}
            />
            <RoleSelect label={t('client.members.roleWord')} value={rule.role} onChange={(role) => set(at, { role })} />
            <TextInput
              label={t('client.company.project')}
              value={rule.project ?? ''}
              onChange={({ currentTarget }) => set(at, { project: currentTarget.value || null })}
            />
            <ActionIcon
              variant="subtle"
              color="red"
              size="lg"
              aria-label={t('client.company.removeGroup', { number: at + 1 })}
              onClick={() => onChange(rules.filter((_, index) => index !== at))}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </Group>
        ))}
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() => onChange([...rules, { claim: 'groups', value: '', role: 'developer', project: null }])}
          >
            {t('client.company.addGroup')}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}

export function Saved({ change }: { readonly change: Change }) {
  const { t } = useTranslation();
  const [removing, setRemoving] = useState(false);
  const { busy, run } = useWork((error) => {
    notifications.show({ message: error instanceof Error ? error.message : String(error), color: 'red' });
    return undefined;
  });
  const test = async () => {
    const { problem } = await send<{ problem: string | null }>('POST', '/members/sign-in/test');
    const message = problem === null ? t('client.company.answers') : t('client.company.problem', { problem });
    notifications.show({ message, color: problem === null ? 'teal' : 'red' });
  };
  return (
    <>
      <Button variant="subtle" color="red" onClick={() => setRemoving(true)}>
        {t('client.company.forget')}
      </Button>
      <Button variant="default" loading={busy} onClick={() => void run(test)}>
        {t('client.company.test')}
      </Button>
      <Confirm
        opened={removing}
        title={t('client.company.forgetTitle')}
        action={t('client.company.forget')}
        danger
        onConfirm={() => change('DELETE', '/provider')}
        onClose={() => setRemoving(false)}
      >
        {t('client.company.forgetWords')}
      </Confirm>
    </>
  );
}
