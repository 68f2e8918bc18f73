/** What may be done from the search: actions that this person and this gateway have, as lines of the list. */
import { useMantineColorScheme } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { has, isOperator, useMe } from '../api/session.ts';
import { languageName, languages, speak } from '../texts/index.ts';
import type { Action } from './command-places.ts';

export function useActions(): readonly Action[] {
  const { t } = useTranslation();
  const me = useMe();
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const acts = isOperator(me);
  const mine = me.account !== null;
  const action = (
    name: 'createKey' | 'createBatch' | 'credit' | 'debit' | 'refund' | 'makeCodes',
    more: Partial<Action>,
  ): Action => ({
    name: t(`shell.command.action.${name}`),
    ...more,
  });
  const offered: readonly (readonly [boolean, Action])[] = [
    [mine && has(me, 'accounts'), action('createKey', { to: '/keys', search: { new: '1' } })],
    [mine && has(me, 'batches'), action('createBatch', { to: '/batches', search: { new: '1' } })],
    [
      acts && has(me, 'accounts') && has(me, 'wallet'),
      action('credit', { asks: 'account', search: { act: 'credit' } }),
    ],
    [acts && has(me, 'accounts') && has(me, 'wallet'), action('debit', { asks: 'account', search: { act: 'debit' } })],
    [acts && has(me, 'requests') && has(me, 'money'), action('refund', { asks: 'request', search: { act: 'refund' } })],
    [acts && has(me, 'codes'), action('makeCodes', { to: '/admin/codes', search: { make: 'balance' } })],
  ];
  const looks = (['light', 'dark', 'auto'] as const).map((scheme) => ({
    name: t('shell.command.action.theme', { theme: t(`shell.theme.${scheme}`) }),
    run: () => setColorScheme(scheme),
  }));
  const spoken = languages.map((code) => ({
    name: t('shell.command.action.language', { language: languageName(code) }),
    run: () => void speak(code),
  }));
  return [...offered.flatMap(([isOffered, one]) => (isOffered ? [one] : [])), ...looks, ...spoken];
}
