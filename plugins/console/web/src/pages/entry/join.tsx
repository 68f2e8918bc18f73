/** Where the link of an invitation to an account leads: it is accepted by its person, who signs in or up first. */
import { Button, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../../api/client.ts';
import { meQuery, useInfo } from '../../api/session.ts';
import { setSessionEnded } from '../../api/session-end.ts';
import type { Me } from '../../api/types.ts';
import { EntryFrame, TextLink } from '../../parts/entry-frame.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';
import { SignUpForm } from './sign-up-form.tsx';
import '../../parts/member-texts.ts';

interface Invited {
  readonly account: string;
  readonly email: string;
  readonly role: NonNullable<Me['account']>['role'];
}

/** Here it is no end of a session that a person is not signed in. */
async function whoAsks(): Promise<Me | null> {
  const response = await fetch('/console/api/me', { headers: { accept: 'application/json' } });
  return response.ok ? ((await response.json()) as Me) : null;
}

export default function Join({ token }: { readonly token: string }) {
  const { t } = useTranslation();
  const me = useQuery({ queryKey: [...meQuery.queryKey, 'join'], queryFn: whoAsks });
  const invited = useQuery({
    queryKey: ['join', token],
    queryFn: () => get<Invited>('/members/join', { token }),
    retry: false,
  });
  if (invited.isError)
    return (
      <EntryFrame
        title={t('client.members.joinOver')}
        below={<TextLink to="/sign-in">{t('entry.signIn.title')}</TextLink>}
      >
        <Text fz="sm">{t('client.members.joinOverHint')}</Text>
      </EntryFrame>
    );
  if (invited.data === undefined || me.data === undefined)
    return (
      <EntryFrame title={t('client.members.waiting')}>
        <Waiting height={80} />
      </EntryFrame>
    );
  const { account, role } = invited.data;
  return (
    <EntryFrame
      title={t('client.members.join', { account })}
      hint={t('client.members.joinHint', { role: t(`client.members.role.${role}`) })}
    >
      {me.data === null ? (
        <Enter token={token} invited={invited.data} />
      ) : (
        <Accept token={token} invited={invited.data} email={me.data.person?.email ?? ''} />
      )}
    </EntryFrame>
  );
}

async function accept(token: string): Promise<void> {
  await send('POST', '/members/join', { token });
  setSessionEnded(false);
  sessionStorage.removeItem('account');
  location.assign('/console/');
}

interface JoinProps {
  readonly token: string;
  readonly invited: Invited;
}

function Accept({ token, invited, email }: JoinProps & { readonly email: string }) {
  const { t } = useTranslation();
  const { busy, problem, run } = useWork((error) => error);
  if (email.toLowerCase() !== invited.email)
    return <Text fz="sm">{t('client.members.joinAs', { email, wanted: invited.email })}</Text>;
  return (
    <Stack>
      {problem !== undefined && <ErrorState error={problem} />}
      <Button loading={busy} onClick={() => void run(() => accept(token))}>
        {t('client.members.join', { account: invited.account })}
      </Button>
    </Stack>
  );
}

/** After signing in, this page comes again; after signing up, the invitation is accepted at once. */
function Enter({ token, invited: { email } }: JoinProps) {
  const { t } = useTranslation();
  const info = useInfo();
  const search = useSearch({ strict: false }) as { readonly email?: string };
  const [sentTo, setSentTo] = useState<string>();
  const next = `/sign-up?${new URLSearchParams({ join: token, email: search.email ?? email })}`;
  if (sentTo !== undefined)
    return (
      <Text fz="sm">
        {t(info?.mail === false ? 'entry.verify.byOperator' : 'entry.verify.sent', { email: sentTo })}
      </Text>
    );
  return (
    <Stack>
      <Button variant="default" renderRoot={(props) => <Link {...props} to="/sign-in" search={{ next, email }} />}>
        {t('client.members.joinHave', { email })}
      </Button>
      {info?.signUp !== 'closed' && (
        <SignUpForm invite={token} email={email} onMail={setSentTo} onEntered={() => accept(token)} />
      )}
    </Stack>
  );
}
