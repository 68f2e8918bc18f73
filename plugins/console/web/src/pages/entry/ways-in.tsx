/** The ways to sign in: password, passkey, and the providers that the gateway is set up with. */
import { Alert, Button, Checkbox, Divider, Group, PasswordInput, Stack, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { canUsePasskeys, signIn, signInBy, signInByPasskey } from '../../api/auth.ts';
import { ApiError } from '../../api/client.ts';
import { useInfo } from '../../api/session.ts';
import { TextLink } from '../../parts/entry-frame.tsx';
import { useErrorText } from '../../parts/states.tsx';
import { EntryForm } from './form-part.tsx';

export function PasswordForm({
  onDone,
  onSecond,
}: {
  readonly onDone: () => Promise<void>;
  readonly onSecond: () => void;
}) {
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [remember, setRemember] = useState(true);
  const send = async () => {
    if ((await signIn(email.trim(), password, remember)) === 'second') onSecond();
    else await onDone();
  };
  const words = (error: unknown) => {
    if (!(error instanceof ApiError)) return undefined;
    if (error.status === 401) return t('entry.signIn.wrong');
    if (error.code === 'email_not_verified') return t('entry.signIn.unverified');
    if (error.code === 'use_company') return t('client.company.required', { defaultValue: error.message });
    return error.status === 429 ? t('entry.signIn.throttled') : undefined;
  };
  return (
    <EntryForm button={t('entry.signIn.button')} onSend={send} words={words}>
      <TextInput
        label={t('entry.email')}
        type="email"
        name="email"
        autoComplete="username webauthn"
        required
        withAsterisk={false}
        value={email}
        onChange={({ currentTarget }) => setEmail(currentTarget.value)}
      />
      <PasswordInput
        label={t('entry.password')}
        name="password"
        autoComplete="current-password"
        required
        withAsterisk={false}
        value={password}
        onChange={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <Group justify="space-between" gap="xs">
        <Checkbox
          size="xs"
          label={t('entry.signIn.remember')}
          checked={remember}
          onChange={({ currentTarget }) => setRemember(currentTarget.checked)}
        />
        <TextLink to="/forgot-password" small>
          {t('entry.signIn.forgot')}
        </TextLink>
      </Group>
    </EntryForm>
  );
}

/** `next`: the page inside the console that a provider comes back to. */
export function OtherWays({ onDone, next }: { readonly onDone: () => Promise<void>; readonly next: string }) {
  const { t } = useTranslation();
  const info = useInfo();
  const textOf = useErrorText();
  const [problem, setProblem] = useState<string>();
  const wordsOf = (error: unknown) => {
    if (!(error instanceof ApiError)) return t('entry.signIn.cancelled');
    if (error.code === 'use_company') return t('client.company.required', { defaultValue: error.message });
    return error.code === 'passkey_not_found' ? t('entry.signIn.unknownPasskey') : textOf(error);
  };
  const attempt = async (work: () => Promise<unknown>) => {
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  const providers = info?.providers ?? [];
  const passkeys = canUsePasskeys();
  if (!passkeys && providers.length === 0) return null;
  return (
    <Stack gap="xs">
      <Divider label={t('entry.or')} />
      {problem !== undefined && (
        <Alert color="red" variant="light" role="alert" py="xs">
          {problem}
        </Alert>
      )}
      {passkeys && (
        <Button
          variant="default"
          leftSection={<IconFingerprint size={17} />}
          onClick={() => void attempt(async () => signInByPasskey().then(onDone))}
        >
          {t('entry.signIn.passkey')}
        </Button>
      )}
      {providers.map(({ id, name }) => (
        <Button key={id} variant="default" onClick={() => void attempt(() => signInBy(id, next))}>
          {t('entry.signIn.by', { provider: name })}
        </Button>
      ))}
    </Stack>
  );
}
