/** Signing up: open to all, by invitation, or closed, as the gateway is set up. */
import { Anchor, Text } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { signUp } from '../../api/auth.ts';
import { useInfo } from '../../api/session.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { useEntered } from './after-entry.ts';
import { EntryForm } from './form-part.tsx';
import { IdentityFields, useIdentity } from './identity-fields.tsx';

export default function SignUp() {
  const { t } = useTranslation();
  const info = useInfo();
  const { invite, email } = useSearch({ strict: false }) as { invite?: string; email?: string };
  const [sentTo, setSentTo] = useState<string>();
  const gateway = info?.gateway ?? '';
  const below = (
    <>
      {t('entry.signUp.have')} <TextLink to="/sign-in">{t('entry.signIn.title')}</TextLink>
    </>
  );
  if (sentTo !== undefined) {
    const words = info?.mail === false ? 'entry.verify.byOperator' : 'entry.verify.sent';
    return (
      <EntryFrame title={t('entry.verify.title')} below={below}>
        <Text fz="sm">{t(words, { email: sentTo })}</Text>
      </EntryFrame>
    );
  }
  if (info?.signUp === 'closed')
    return (
      <EntryFrame title={t('entry.signUp.closed')} below={below}>
        <Text fz="sm">{t('entry.signUp.closedHint', { gateway })}</Text>
      </EntryFrame>
    );
  if (info?.signUp === 'invite' && invite === undefined)
    return (
      <EntryFrame title={t('entry.signUp.inviteOnly')} below={below}>
        <Text fz="sm">{t('entry.signUp.inviteHint', { gateway })}</Text>
      </EntryFrame>
    );
  return (
    <EntryFrame title={t('entry.signUp.title')} below={below}>
      <SignUpForm invite={invite} email={email} onMail={setSentTo} />
    </EntryFrame>
  );
}

interface SignUpFormProps {
  readonly invite: string | undefined;
  /** The invited address. */
  readonly email: string | undefined;
  /** No session began: a mail has the link that confirms the address. */
  readonly onMail: (email: string) => void;
}

function SignUpForm({ invite, email: invited, onMail }: SignUpFormProps) {
  const { t } = useTranslation();
  const entered = useEntered();
  const form = useIdentity(invited);
  const terms = useInfo()?.brand.terms ?? null;
  const send = async () => {
    if (form.validate().hasErrors) return;
    const { name, email, password } = form.getValues();
    if (await signUp({ name: name.trim(), email: email.trim(), password, invite })) await entered();
    else onMail(email);
  };
  return (
    <EntryForm button={t('entry.signUp.button')} onSend={send}>
      <IdentityFields form={form} />
      {terms !== null && (
        <Text fz="xs" c="dimmed">
          {t('entry.legal.accept')}{' '}
          <Anchor inherit href={terms} underline="always">
            {t('entry.legal.terms')}
          </Anchor>
        </Text>
      )}
    </EntryForm>
  );
}
