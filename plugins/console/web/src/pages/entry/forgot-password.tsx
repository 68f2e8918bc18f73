/** Asks for the link by which a new password is set. */
import { Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askForReset } from '../../api/auth.ts';
import { useInfo } from '../../api/session.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { EntryForm } from './form-part.tsx';

export default function ForgotPassword() {
  const { t } = useTranslation();
  const info = useInfo();
  const [email, setEmail] = useState('');
  const [sent, setSent] = useState(false);
  const below = <TextLink to="/sign-in">{t('entry.forgot.back')}</TextLink>;
  const notice = info?.mail === false ? t('entry.forgot.byOperator') : sent ? t('entry.forgot.sent') : undefined;
  if (notice !== undefined)
    return (
      <EntryFrame title={t('entry.forgot.title')} below={below}>
        <Text fz="sm">{notice}</Text>
      </EntryFrame>
    );
  return (
    <EntryFrame title={t('entry.forgot.title')} hint={t('entry.forgot.hint')} below={below}>
      <EntryForm button={t('entry.forgot.button')} onSend={() => askForReset(email.trim()).then(() => setSent(true))}>
        <TextInput
          label={t('entry.email')}
          type="email"
          autoComplete="username"
          required
          withAsterisk={false}
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
      </EntryForm>
    </EntryFrame>
  );
}
