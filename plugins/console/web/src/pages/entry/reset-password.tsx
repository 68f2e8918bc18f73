/** Where the link of a reset leads: sets the new password. */
import { Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { resetPassword } from '../../api/auth.ts';
import { ApiError } from '../../api/client.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { checks, EntryForm } from './form-part.tsx';
import { NewPassword } from './identity-fields.tsx';

export default function ResetPassword() {
  const { t } = useTranslation();
  const { token, error } = useSearch({ strict: false }) as { token?: string; error?: string };
  const [done, setDone] = useState(false);
  const form = useForm({ initialValues: { password: '' }, validate: { password: checks.password } });
  const below = <TextLink to="/sign-in">{t('entry.forgot.back')}</TextLink>;
  const notice = done
    ? t('entry.reset.done')
    : token === undefined || error !== undefined
      ? t('entry.reset.invalid')
      : undefined;
  if (notice !== undefined)
    return (
      <EntryFrame title={t('entry.reset.title')} below={below}>
        <Text fz="sm">{notice}</Text>
      </EntryFrame>
    );
  const send = async () => {
    if (form.validate().hasErrors) return;
    await resetPassword(token!, form.getValues().password);
    setDone(true);
  };
  const words = (problem: unknown) =>
    problem instanceof ApiError && problem.code === 'invalid_token' ? t('entry.reset.invalid') : undefined;
  return (
    <EntryFrame title={t('entry.reset.title')} below={below}>
      <EntryForm button={t('entry.reset.button')} onSend={send} words={words}>
        <NewPassword {...form.getInputProps('password')} label={t('entry.newPassword')} />
      </EntryForm>
    </EntryFrame>
  );
}
