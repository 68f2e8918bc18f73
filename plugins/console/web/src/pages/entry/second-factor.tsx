/** The step after the password where a second factor is on. */
import { Button, Checkbox, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { proveSecond } from '../../api/auth.ts';
import { ApiError } from '../../api/client.ts';
import { EntryFrame } from '../../parts/entry-frame.tsx';
import { EntryForm } from './form-part.tsx';

interface SecondFactorProps {
  readonly onDone: () => Promise<void>;
  readonly onAgain: () => void;
}

export function SecondFactor({ onDone, onAgain }: SecondFactorProps) {
  const { t } = useTranslation();
  return (
    <EntryFrame
      title={t('entry.second.title')}
      hint={t('entry.second.hint')}
      below={
        <Button variant="subtle" size="xs" onClick={onAgain}>
          {t('entry.second.again')}
        </Button>
      }
    >
      <SecondFactorForm onDone={onDone} />
    </EntryFrame>
  );
}

export function SecondFactorForm({ onDone }: Pick<SecondFactorProps, 'onDone'>) {
  const { t } = useTranslation();
  const [code, setCode] = useState('');
  const [trust, setTrust] = useState(false);
  const words = (error: unknown) =>
    error instanceof ApiError && error.status > 0 && error.status < 500 && error.status !== 429
      ? t('entry.second.wrong')
      : undefined;
  return (
    <EntryForm button={t('entry.second.button')} onSend={() => proveSecond(code, trust).then(onDone)} words={words}>
      <TextInput
        label={t('entry.second.code')}
        autoComplete="one-time-code"
        data-autofocus
        required
        withAsterisk={false}
        value={code}
        onChange={({ currentTarget }) => setCode(currentTarget.value)}
      />
      <Checkbox
        size="xs"
        label={t('entry.second.trust')}
        checked={trust}
        onChange={({ currentTarget }) => setTrust(currentTarget.checked)}
      />
    </EntryForm>
  );
}
