/** The error of a call, in the reader's language, with the way to the wallet where money is missing. */
import { Alert } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../../api/client.ts';
import { TextLink } from '../../../parts/entry-frame.tsx';
import { useErrorText } from '../../../parts/states.tsx';

export interface Problem {
  readonly text: string;
  /** Status of the answer; 0: there was none, or it broke off. */
  readonly status: number;
}

/** The gateway's own message is the most exact one, and English; other languages have a text for its code, or for its status. */
export function useProblem(): (error: unknown) => Problem {
  const { t, i18n } = useTranslation();
  const textOf = useErrorText();
  return (error) => {
    if (!(error instanceof ApiError)) {
      const message = error instanceof Error && !(error instanceof TypeError) ? error.message : '';
      return { text: [t('client.playground.cut'), message].filter(Boolean).join(' '), status: 0 };
    }
    const { code, message, status } = error;
    if (i18n.language === 'en' && message !== '') return { text: message, status };
    const own = `client.playground.problems.${code}`;
    if (i18n.exists(own)) return { text: t(own as 'client.playground.problems.expired'), status };
    if (i18n.exists(`shell.errors.${code}`)) return { text: textOf(error), status };
    const detail = message === '' ? '' : ` (${message})`;
    return { text: `${t('client.playground.failed', { status })}${detail}`, status };
  };
}

export function Refused({ problem: { text, status } }: { readonly problem: Problem }) {
  const { t } = useTranslation();
  return (
    <Alert color="red" variant="light" role="alert">
      {text} {status === 402 && <TextLink to="/wallet">{t('client.wallet.topUp')}</TextLink>}
    </Alert>
  );
}
