/** Where the one-time link of the first start leads: makes the first operator and signs them in. */
import { Text } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { signIn } from '../../api/auth.ts';
import { send } from '../../api/client.ts';
import { infoQuery, queries } from '../../api/session.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { useEntered } from './after-entry.ts';
import { EntryForm } from './form-part.tsx';
import { IdentityFields, useIdentity } from './identity-fields.tsx';

export default function FirstOperator() {
  const { t } = useTranslation();
  const { token } = useSearch({ strict: false }) as { token?: string };
  const form = useIdentity();
  const entered = useEntered();
  if (token === undefined)
    return (
      <EntryFrame title={t('entry.first.noToken')} below={<TextLink to="/sign-in">{t('entry.signIn.title')}</TextLink>}>
        <Text fz="sm">{t('entry.first.noTokenHint')}</Text>
      </EntryFrame>
    );
  const make = async () => {
    if (form.validate().hasErrors) return;
    const { name, email, password } = form.getValues();
    await send('POST', '/first-operator', { token, name: name.trim(), email: email.trim(), password });
    await queries.invalidateQueries({ queryKey: infoQuery.queryKey });
    await signIn(email.trim(), password, true);
    await entered();
  };
  return (
    <EntryFrame title={t('entry.first.title')} hint={t('entry.first.hint')}>
      <EntryForm button={t('entry.first.button')} onSend={make}>
        <IdentityFields form={form} />
      </EntryForm>
    </EntryFrame>
  );
}
