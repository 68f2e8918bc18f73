/** Providers that people sign in by: the addresses to register there, and a test of what they say of themselves. */
import { Button, Code, Fieldset, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { send } from '../../../../api/client.ts';
import { CopyButton } from '../../../../parts/copy-button.tsx';
import { useErrorText } from '../../../../parts/states.tsx';
import { useActs } from '../../parts/act.tsx';
import { Loaded, useAnswer } from '../../parts/load.tsx';
import type { SignInProvider } from '../../types.ts';

export function Providers() {
  const { t } = useTranslation();
  const answer = useAnswer<{ readonly rows: readonly SignInProvider[] }>('/admin/sign-in');
  return (
    <Fieldset legend={t('operator.config.forms.providers')}>
      <Loaded of={answer} height={80}>
        {({ rows }) => (
          <Stack gap="md">
            <Text fz="sm" c="dimmed">
              {t(rows.length === 0 ? 'operator.config.forms.noProviders' : 'operator.config.forms.providersHint')}
            </Text>
            {rows.map((provider) => (
              <OneProvider key={provider.id} provider={provider} />
            ))}
          </Stack>
        )}
      </Loaded>
    </Fieldset>
  );
}

function OneProvider({ provider }: { readonly provider: SignInProvider }) {
  const { t } = useTranslation();
  const acts = useActs();
  const { id, name, issuer, domains, withoutPasswords, redirectUri, signedOutUri, signOut } = provider;
  return (
    <Stack gap={6} data-testid={`provider-${id}`}>
      <Group justify="space-between" gap="xs">
        <div>
          <Text fw={600}>{name}</Text>
          <Text fz="xs" c="dimmed" className="wrap-any">
            {issuer}
          </Text>
        </div>
        {acts && <Test id={id} />}
      </Group>
      <OneAddress label={t('operator.config.forms.redirectUri')} address={redirectUri} />
      {signOut === 'provider' && <OneAddress label={t('operator.config.forms.signedOutUri')} address={signedOutUri} />}
      <Text fz="sm">
        {domains.length === 0
          ? t('operator.config.forms.anyDomain')
          : t('operator.config.forms.domains', { domains: domains.join(', ') })}{' '}
        {withoutPasswords.length > 0 &&
          t('operator.config.forms.withoutPasswords', { domains: withoutPasswords.join(', ') })}
      </Text>
    </Stack>
  );
}

export function OneAddress({ label, address }: { readonly label: string; readonly address: string }) {
  return (
    <div>
      <Text fz="xs" c="dimmed">
        {label}
      </Text>
      <Group gap="xs" wrap="nowrap">
        <Code className="wrap-any">{address}</Code>
        <CopyButton text={address} />
      </Group>
    </div>
  );
}

function Test({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const run = useMutation({
    mutationFn: () => send<{ readonly problem: string | null }>('POST', `/admin/sign-in/${id}/test`, {}),
  });
  const problem = run.error === null ? run.data?.problem : textOf(run.error);
  return (
    <Group gap="xs">
      <Text fz="sm" role="status" c={problem ? 'red' : undefined} className="wrap-any">
        {problem ?? (run.data === undefined ? '' : t('operator.config.forms.providerAnswers'))}
      </Text>
      <Button size="xs" variant="default" loading={run.isPending} onClick={() => run.mutate()}>
        {t('operator.config.forms.testProvider')}
      </Button>
    </Group>
  );
}
