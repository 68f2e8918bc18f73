/** A recorded request, made again as it was or as the reader changes it. */
import { Alert, Badge, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { IconPlayerPlayFilled, IconPlayerStopFilled } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../../api/client.ts';
import { isOperator, useMe } from '../../../api/session.ts';
import type { OwnBody, RequestRow, RequestStory } from '../../../api/types.ts';
import { bodyIn, placeOf, readable } from '../../../calls/recorded.ts';
import { CodeBlock } from '../../../parts/code-block.tsx';
import { TextLink } from '../../../parts/entry-frame.tsx';
import { durationText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { EmptyState, ErrorState, Waiting } from '../../../parts/states.tsx';
import { SessionKey, useSessionKey } from '../session-key.tsx';
import { AsCode } from './as-code.tsx';
import { Bench } from './bench.tsx';
import { Measures } from './measures.tsx';
import { Refused } from './problem.tsx';
import { useRun } from './use-run.ts';

interface Recorded {
  readonly request: Pick<RequestRow, 'id' | 'operation' | 'protocol' | 'model' | 'streamed'>;
  readonly body: OwnBody;
}

/** Operators make any recorded request again, which the audit log says; clients their own. */
async function recordedOf(id: string, ofAll: boolean, signal: AbortSignal): Promise<Recorded> {
  const name = encodeURIComponent(id);
  const story = await get<Pick<RequestStory, 'request'>>(`${ofAll ? '/admin/requests' : '/usage'}/${name}`, {}, signal);
  const path = ofAll ? `/admin/requests/${name}/bodies` : `/usage/${name}/body`;
  const kept = await get<{ readonly request?: OwnBody; readonly kept?: { readonly request: OwnBody } | null }>(
    path,
    {},
    signal,
  );
  return { request: story.request, body: (ofAll ? kept.kept?.request : kept.request) ?? null };
}

export default function Replay({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const me = useMe();
  const recorded = useQuery({
    queryKey: ['recorded', id],
    queryFn: ({ signal }) => recordedOf(id, isOperator(me), signal),
    // Each look of an operator is written down: none is made by itself.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  if (recorded.error !== null) return <ErrorState error={recorded.error} onRetry={() => void recorded.refetch()} />;
  if (recorded.data === undefined) return <Waiting height={420} />;
  const { request, body } = recorded.data;
  const place = placeOf(request);
  if (body === null || place === undefined)
    return (
      <Panel>
        <EmptyState title={t('client.playground.replayNone')} hint={t('client.playground.replayNoneHint')} />
      </Panel>
    );
  return <Again request={request} body={body} place={place} />;
}

interface AgainProps {
  readonly request: Recorded['request'];
  readonly body: NonNullable<OwnBody>;
  readonly place: NonNullable<ReturnType<typeof placeOf>>;
}

function Again({ request, body, place }: AgainProps) {
  const { t } = useTranslation();
  const [key, setKey] = useSessionKey();
  const [text, setText] = useState(() => readable(body.text));
  const run = useRun<string>(key, request.id);
  const written = bodyIn(text);
  const call = written && { ...place, body: written };
  const isReady = key !== '' && call !== undefined && !run.busy;
  return (
    <Bench
      settings={<RequestSettings request={request} place={place} apiKey={key} onKey={setKey} />}
      measures={
        (run.busy || run.requestId !== undefined) && (
          <Measures
            facts={[[t('shell.word.wholeAnswer'), durationText(run.totalMs)]]}
            requestId={run.requestId}
            busy={run.busy}
          />
        )
      }
    >
      <Panel>
        <Stack gap="sm">
          {body.leftOut > 0 && (
            <Alert color="yellow" variant="light" py="xs">
              {t('client.playground.replayCut')}
            </Alert>
          )}
          <Textarea
            label={t('client.playground.replayBody')}
            description={t('client.playground.replayHint')}
            autosize
            minRows={8}
            maxRows={24}
            spellCheck={false}
            styles={{ input: { fontFamily: 'monospace' } }}
            value={text}
            error={written === undefined ? t('client.playground.replayNoJson') : undefined}
            onChange={({ currentTarget }) => setText(currentTarget.value)}
          />
          <Group justify="space-between">
            <Text fz="xs" c="dimmed">
              {key === '' ? t('client.playground.keyMissing') : ''}
            </Text>
            {run.busy ? (
              <Button variant="default" leftSection={<IconPlayerStopFilled size={14} />} onClick={run.stop}>
                {t('client.playground.stop')}
              </Button>
            ) : (
              <Button
                leftSection={<IconPlayerPlayFilled size={14} />}
                disabled={!isReady}
                onClick={() => call && void run.start(call, (answer) => answerText(answer))}
              >
                {t('client.playground.run')}
              </Button>
            )}
          </Group>
        </Stack>
      </Panel>
      {run.problem !== undefined && <Refused problem={run.problem} />}
      {run.result !== undefined && <CodeBlock label={t('client.playground.replayAnswer')} text={run.result} />}
      <AsCode call={call} apiKey={key} />
    </Bench>
  );
}

interface SettingsProps extends Pick<AgainProps, 'request' | 'place'> {
  readonly apiKey: string;
  readonly onKey: (key: string) => void;
}

function RequestSettings({ request, place, apiKey, onKey }: SettingsProps) {
  const { t } = useTranslation();
  return (
    <>
      <Text fz="sm" fw={600}>
        {t('client.playground.replayTitle')}
      </Text>
      <Group gap={6}>
        {request.model !== null && (
          <Badge variant="default" tt="none">
            {request.model}
          </Badge>
        )}
        <Badge variant="default" tt="none">
          {request.protocol ?? request.operation}
        </Badge>
      </Group>
      <Text fz="xs" c="dimmed" className="mono wrap-any">
        POST {place.path}
      </Text>
      <SessionKey value={apiKey} onChange={onKey} />
      <TextLink to="/playground">{t('client.playground.replayLeave')}</TextLink>
    </>
  );
}

const longestAnswer = 200_000;

/** Text as it comes; of sound and pictures their type and length. */
async function answerText(answer: Response): Promise<string> {
  const type = answer.headers.get('content-type') ?? '';
  if (!/json|text|event-stream/.test(type)) return `${type}: ${(await answer.arrayBuffer()).byteLength} bytes`;
  return readable((await answer.text()).slice(0, longestAnswer));
}
