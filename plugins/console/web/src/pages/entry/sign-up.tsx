/** Signing up: open to all, by invitation, or closed, as the gateway is set up. */
import { Text } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useInfo } from '../../api/session.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { SignUpForm } from './sign-up-form.tsx';

const Join = lazy(() => import('./join.tsx'));

export default function SignUp() {
  const { join } = useSearch({ strict: false }) as { join?: string };
  return join === undefined ? (
    <Alone />
  ) : (
    <Suspense>
      <Join token={join} />
    </Suspense>
  );
}

/** Not by an invitation to an account. */
function Alone() {
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
