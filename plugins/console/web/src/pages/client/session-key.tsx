/** The key of the playground: pasted, or made for the session. It lives in this tab alone, and ends with it or with signing out. */
import { Button, PasswordInput, Stack } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../api/client.ts';
import { has, useMe } from '../../api/session.ts';
import type { KeyTerms, NewKey } from '../../api/types.ts';
import { useErrorText } from '../../parts/states.tsx';
import './playground-texts.ts';
import { useWork } from '../../parts/use-work.ts';

/** Outlives a reload, not the tab; another person who signs in here does not get it. */
const keptUnder = 'console-playground-key';
/** A batch that is ordered with it runs for a day. */
const lifetimeMs = 2 * 86_400_000;

export function useSessionKey(): readonly [string, (key: string) => void] {
  const own = `${useMe().person?.id ?? ''} `;
  const [key, setKey] = useState(() => {
    const kept = sessionStorage.getItem(keptUnder) ?? '';
    return kept.startsWith(own) ? kept.slice(own.length) : '';
  });
  const change = (next: string) => {
    sessionStorage.setItem(keptUnder, own + next.trim());
    setKey(next.trim());
  };
  return [key, change];
}

export function SessionKey({ value, onChange }: { readonly value: string; readonly onChange: (key: string) => void }) {
  const { t } = useTranslation();
  const me = useMe();
  const { busy, problem, run } = useWork(useErrorText());
  const make = () => {
    const terms: KeyTerms = {
      name: t('client.playground.keyName'),
      project: null,
      models: null,
      addresses: null,
      limits: null,
      cap: null,
      images: 'task',
      tags: null,
      regions: null,
      expiresAt: new Date(Date.now() + lifetimeMs).toISOString(),
    };
    return run(async () => onChange((await send<NewKey>('POST', '/keys', terms)).key));
  };
  return (
    <Stack gap={6}>
      <PasswordInput
        label={t('shell.word.key')}
        description={t('client.playground.keyHint')}
        placeholder={t('client.playground.keyPaste')}
        autoComplete="off"
        spellCheck={false}
        data-1p-ignore
        value={value}
        error={problem}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {value === '' && has(me, 'accounts') && (
        <Button
          size="xs"
          variant="light"
          loading={busy}
          onClick={() => void make()}
          title={t('client.playground.makeKeyHint')}
        >
          {t('client.playground.makeKey')}
        </Button>
      )}
    </Stack>
  );
}
