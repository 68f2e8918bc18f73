/** The way in for people of a company that is an account here: their address says where they sign in. */
import { Button, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { signInBy } from '../../api/auth.ts';
import { send } from '../../api/client.ts';
import { EntryForm } from './form-part.tsx';
import '../../parts/company-texts.ts';

export function CompanySignIn({ next }: { readonly next: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [email, setEmail] = useState('');
  const leave = async () => {
    const body = { email: email.trim() };
    const { provider } = await send<{ provider: { id: string } | null }>('POST', '/company-sign-in', body);
    if (provider === null) throw new Error('unknown');
    await signInBy(provider.id, next);
  };
  const words = (error: unknown) =>
    error instanceof Error && error.message === 'unknown' ? t('client.company.unknown') : undefined;
  if (!open)
    return (
      <Button variant="default" onClick={() => setOpen(true)}>
        {t('client.company.enter')}
      </Button>
    );
  return (
    <Stack gap="xs">
      <Text fz="sm">{t('client.company.enterHint')}</Text>
      <EntryForm button={t('client.company.enterButton')} onSend={leave} words={words}>
        <TextInput
          label={t('entry.email')}
          type="email"
          name="company-email"
          autoComplete="email"
          data-testid="company-email"
          required
          withAsterisk={false}
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
      </EntryForm>
    </Stack>
  );
}
