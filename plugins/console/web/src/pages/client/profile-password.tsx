/** Changes the password; where there is none, how to get one. */
import { Alert, Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askForReset, changePassword } from '../../api/auth.ts';
import { useInfo, usePerson } from '../../api/session.ts';
import { Panel } from '../../parts/page.tsx';
import { useErrorText } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';

export function Password() {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [done, setDone] = useState(false);
  const form = useForm({
    initialValues: { current: '', next: '' },
    validate: {
      current: (value) => (value === '' ? t('client.profile.current') : null),
      next: (value) => (value.length >= 10 ? null : t('entry.passwordShort')),
    },
  });
  const submit = form.onSubmit(async ({ current, next }) => {
    setDone(false);
    try {
      await changePassword(current, next);
      form.reset();
      setDone(true);
    } catch (error) {
      form.setFieldError('current', textOf(error));
    }
  });
  return (
    <Panel title={t('entry.password')} hint={t('client.profile.passwordHint')}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          {done && (
            <Alert color="teal" variant="light" role="status">
              {t('client.profile.changed')}
            </Alert>
          )}
          <PasswordInput
            label={t('client.profile.current')}
            autoComplete="current-password"
            {...form.getInputProps('current')}
          />
          <PasswordInput
            label={t('entry.newPassword')}
            description={t('entry.passwordHint')}
            autoComplete="new-password"
            {...form.getInputProps('next')}
          />
          <Group justify="flex-end">
            <Button type="submit" variant="default" loading={form.submitting}>
              {t('client.profile.change')}
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}

/** People who sign in by a provider. */
export function NoPassword() {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const { email, providerOnly } = usePerson();
  const info = useInfo();
  const [sent, setSent] = useState(false);
  const { busy, problem, run } = useWork(textOf);
  if (providerOnly)
    return (
      <Panel title={t('entry.password')}>
        <Text fz="sm">{t('client.profile.providerOnly')}</Text>
      </Panel>
    );
  return (
    <Panel title={t('entry.password')} hint={t('client.profile.noPassword')}>
      <Stack gap="sm" align="flex-start">
        {info?.mail === true ? (
          <Button
            variant="default"
            loading={busy}
            disabled={sent}
            onClick={() => void run(() => askForReset(email).then(() => setSent(true)))}
          >
            {t(sent ? 'client.profile.linkSent' : 'client.profile.setPassword')}
          </Button>
        ) : (
          <Text fz="sm">{t('entry.forgot.byOperator')}</Text>
        )}
        {problem !== undefined && (
          <Text fz="sm" c="red" role="alert">
            {problem}
          </Text>
        )}
      </Stack>
    </Panel>
  );
}
