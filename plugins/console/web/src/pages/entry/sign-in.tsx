/** Signing in, then the second factor where it is on. */
import { Alert, Stack } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useInfo } from '../../api/session.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { useEntered, useNext } from './after-entry.ts';
import { CompanySignIn } from './company-sign-in.tsx';
import { ProviderProblem } from './provider-problem.tsx';
import { SecondFactor } from './second-factor.tsx';
import { OtherWays, PasswordForm } from './ways-in.tsx';

export default function SignIn() {
  const { t } = useTranslation();
  const info = useInfo();
  const entered = useEntered();
  const next = useNext();
  const [second, setSecond] = useState(false);
  if (second) return <SecondFactor onDone={entered} onAgain={() => setSecond(false)} />;
  return (
    <EntryFrame
      title={t('entry.signIn.title')}
      below={
        info?.signUp === 'open' && (
          <>
            {t('entry.signIn.noAccount')} <TextLink to="/sign-up">{t('entry.signUp.title')}</TextLink>
          </>
        )
      }
    >
      <Stack gap="md">
        {info?.firstOperatorMissing && (
          <Alert color="yellow" variant="light">
            {t('entry.first.missing')}
          </Alert>
        )}
        <ProviderProblem />
        <PasswordForm onDone={entered} onSecond={() => setSecond(true)} />
        <OtherWays onDone={entered} next={next} />
        {info?.companies && <CompanySignIn next={next} />}
      </Stack>
    </EntryFrame>
  );
}
