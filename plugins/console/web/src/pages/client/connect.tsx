/** A program waits with a code for a key: the person sees which, and lets it have one on their terms, or not. */
import { Alert, Button, Code, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { clientPrograms } from '../../../../../../core/tools/client-programs.ts';
import { get, send } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import type { Answer, KeyTerms, Routes } from '../../api/types.ts';
import '../../parts/connect-texts.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { EmptyState, ErrorState, Waiting } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';
import { KeyForm } from './key-form.tsx';

type KeyRequest = Answer<Routes['connect']['requests'][':code']['$get']>;
type AnsweredRequest = Answer<Routes['connect']['requests'][':code']['grant']['$post']>;

export default function Connect() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const [answered, setAnswered] = useState<'granted' | 'denied'>();
  const code = search['code'] ?? '';
  return (
    <Page title={t('client.connect.title')}>
      {answered !== undefined ? (
        <Answered answer={answered} />
      ) : code === '' ? (
        <CodeForm onEnter={(entered) => change({ code: entered })} />
      ) : (
        <Asking key={code} code={code} onAnswer={setAnswered} onOther={() => change({ code: undefined })} />
      )}
    </Page>
  );
}

function CodeForm({ onEnter }: { readonly onEnter: (code: string) => void }) {
  const { t } = useTranslation();
  const [code, setCode] = useState('');
  return (
    <Panel>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (code.trim() !== '') onEnter(code.trim());
        }}
      >
        <Group align="flex-end">
          <TextInput
            label={t('client.connect.code')}
            description={t('client.connect.enter')}
            placeholder="WDJB-MJHT"
            autoComplete="off"
            autoCapitalize="characters"
            spellCheck={false}
            maxLength={40}
            data-autofocus
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
          <Button type="submit">{t('client.connect.next')}</Button>
        </Group>
      </form>
    </Panel>
  );
}

interface AskingProps {
  readonly code: string;
  readonly onAnswer: (answer: 'granted' | 'denied') => void;
  readonly onOther: () => void;
}

function Asking({ code, onAnswer, onOther }: AskingProps) {
  const { t } = useTranslation();
  const path = `/connect/requests/${encodeURIComponent(code)}`;
  // As it was when the page was opened: the answer itself says if it waits no more.
  const asked = useQuery({
    queryKey: ['key-request', code],
    queryFn: () => get<KeyRequest>(path),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { busy, problem, run } = useWork((error) => error);
  if (asked.isPending) return <Waiting height={400} />;
  if (asked.isError)
    return (
      <Stack>
        <ErrorState error={asked.error} onRetry={onOther} />
      </Stack>
    );
  const { program, machine, returnsTo } = asked.data;
  const name = clientPrograms.get(program)?.name ?? program;
  const end = (answer: 'granted' | 'denied', { location }: AnsweredRequest) => {
    onAnswer(answer);
    if (location !== undefined) globalThis.location.assign(location);
  };
  const grant = async (terms: KeyTerms) => end('granted', await send<AnsweredRequest>('POST', `${path}/grant`, terms));
  const deny = async () => end('denied', await send<AnsweredRequest>('POST', `${path}/deny`));
  return (
    <Stack maw={640}>
      <Panel title={t('client.connect.asks', { program: name })}>
        <Stack>
          <Facts request={asked.data} name={name} code={code} />
          <Alert color="yellow" variant="light">
            {returnsTo === null ? t('client.connect.careful') : t('client.connect.carefulReturn', { place: returnsTo })}
          </Alert>
          {problem !== undefined && <ErrorState error={problem} />}
        </Stack>
      </Panel>
      <Panel title={t('shell.word.key')}>
        <KeyForm
          brief
          name={machine === '' ? name : t('client.connect.name', { program: name, machine })}
          other={
            <Button variant="default" loading={busy} onClick={() => run(deny)}>
              {t('client.connect.deny')}
            </Button>
          }
          button={t('client.connect.allow')}
          onSend={grant}
        />
      </Panel>
    </Stack>
  );
}

interface FactsProps {
  readonly request: KeyRequest;
  readonly name: string;
  readonly code: string;
}

function Facts({ request: { machine, address, returnsTo }, name, code }: FactsProps) {
  const { t } = useTranslation();
  const { person } = useMe();
  return (
    <FactList
      facts={[
        returnsTo === null
          ? [
              t('client.connect.code'),
              <Code key="code" fz="lg">
                {code.toUpperCase()}
              </Code>,
            ]
          : [t('client.connect.returnsTo'), <Code key="place">{returnsTo}</Code>],
        [t('client.connect.program'), name],
        ...(machine === '' ? [] : [[t('client.connect.machine'), machine] as const]),
        [t('client.connect.address'), address],
        [t('client.connect.account'), person?.email],
      ]}
    />
  );
}

function Answered({ answer }: { readonly answer: 'granted' | 'denied' }) {
  const { t } = useTranslation();
  return (
    <Panel>
      <div role="status">
        <EmptyState
          icon={IconKey}
          title={t(`client.connect.${answer}`)}
          hint={<Text fz="sm">{t(`client.connect.${answer}Hint`)}</Text>}
          action={
            <Button variant="default" renderRoot={(props) => <Link {...props} to="/keys" />}>
              {t('shell.word.keys')}
            </Button>
          }
        />
      </div>
    </Panel>
  );
}
