/** All details of one request: facts, timeline, charge and its formula. */
import { Box, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { countText } from '../../../parts/format.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useActs } from '../parts/act.tsx';
import { ResultWord } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { AccountLink, RowLink } from '../parts/names.tsx';
import type { OperatorRequest, OperatorStory } from '../types.ts';
import { Bodies } from './bodies.tsx';
import { ChargeBox } from './charge-box.tsx';
import { Moments } from './moments.tsx';
import { storyPath } from './story-path.ts';

export function Story({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const story = useAnswer<OperatorStory>(storyPath(id));
  const me = useMe();
  const mayRead = useActs() && has(me, 'bodies');
  const isGone = story.error instanceof ApiError && story.error.status === 404;
  if (isGone)
    return (
      <EmptyState title={t('operator.traffic.requests.goneTitle')} hint={t('operator.traffic.requests.goneHint')} />
    );
  return (
    <Loaded of={story} height={420}>
      {(data) => (
        <Stack gap="lg">
          <RequestFacts request={data.request} tags={tagsOf(data)} />
          <Part title={t('operator.traffic.requests.timeline')}>
            <Moments story={data} />
          </Part>
          <Part title={t('operator.traffic.requests.charge')}>
            <ChargeBox story={data} />
          </Part>
          {mayRead && (
            <Part title={t('operator.traffic.bodies.title')}>
              <Bodies key={id} id={id} />
            </Part>
          )}
        </Stack>
      )}
    </Loaded>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Box component="section">
      <Title order={3} fz="sm" mb="xs">
        {title}
      </Title>
      {children}
    </Box>
  );
}

/** As the timeline has them. */
const tagsOf = ({ story }: OperatorStory) => story.find(({ kind }) => kind === 'auth.tags')?.values[0];

/** Refusals that only the terms of account, plan, project and key explain. */
const explained = ['region_unavailable', 'retention_none'] as const;

function Refusal({ text, code }: { readonly text: string; readonly code: string | null }) {
  const { t } = useTranslation();
  const refusal = explained.find((one) => one === code);
  return refusal === undefined ? text : `${text}: ${t(`operator.traffic.requests.refusal.${refusal}`)}`;
}

interface RequestFactsProps {
  readonly request: OperatorRequest;
  readonly tags: OperatorStory['story'][number]['values'][number] | undefined;
}

function RequestFacts({ request, tags }: RequestFactsProps) {
  const { t, i18n } = useTranslation();
  const {
    id,
    model,
    provider,
    upstreamModel,
    upstreamId,
    keyId,
    keyName,
    project,
    errorKind,
    errorCode,
    finish,
    servedBy,
    usage,
  } = request;
  const counts = Object.entries(usage ?? {}).filter(([, count]) => count > 0);
  const errorText = [errorKind, errorCode].filter((part) => part !== null).join(' · ');
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <ResultWord request={request} />
        <Text span fz="sm" className="mono wrap-any">
          {id}
        </Text>
        <CopyButton text={id} label={`${t('shell.copy')}: ${t('client.usage.requestId')}`} />
      </Group>
      <Facts
        of={[
          [t('shell.word.time'), <Time key="time" at={request.receivedAt} />],
          [t('shell.word.account'), <AccountLink key="account" id={request.accountId} />],
          keyId !== null && [
            t('shell.word.key'),
            <RowLink key="key" to="/admin/requests" search={{ keyId, span: '30d' }}>
              <span className={keyName === null ? 'mono' : ''} title={keyId}>
                {keyName ?? keyId}
              </span>
            </RowLink>,
          ],
          project !== null && project !== '' && [t('shell.word.project'), project],
          typeof tags === 'string' && [t('client.keys.tags'), tags],
          [t('shell.word.model'), model ?? '–'],
          provider !== null && [t('shell.word.provider'), `${provider}${upstreamModel ? ` / ${upstreamModel}` : ''}`],
          servedBy !== null && [t('client.usage.servedBy'), servedBy],
          upstreamId !== null && [t('operator.traffic.requests.upstreamId'), upstreamId],
          errorText !== '' && [t('shell.word.error'), <Refusal key="error" text={errorText} code={errorCode} />],
          finish !== null && [t('operator.traffic.requests.finish'), finish],
          counts.length > 0 && [
            t('operator.traffic.requests.usage'),
            `${counts.map(([name, count]) => `${countText(count, i18n.language)} ${name}`).join(', ')}${
              request.usageEstimated ? ` (${t('operator.traffic.requests.estimated')})` : ''
            }`,
          ],
        ]}
      />
    </Stack>
  );
}
