/** What happened to a request, moment by moment. */
import { type MantineColor, Text, ThemeIcon, Timeline } from '@mantine/core';
import {
  IconArrowsExchange,
  IconCheck,
  IconDoorEnter,
  IconListDetails,
  IconMessage2,
  IconSend,
  IconX,
} from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { bytesText, durationText, exactMoneyText } from '../../../parts/format.ts';
import { eventWords, failureWords } from '../sums/event-words.ts';
import { type Moment, type Tone, timelineOf } from '../sums/timeline.ts';
import { isNothing } from '../sums/usd.ts';
import type { OperatorAttempt, OperatorStory } from '../types.ts';

const colors: Record<Tone, MantineColor> = { good: 'teal', bad: 'red', odd: 'yellow' };

export function Moments({ story }: { readonly story: OperatorStory }) {
  const { t, i18n } = useTranslation();
  const moments = timelineOf({ ...story.request, dropped: story.dropped, story: story.story }, story.attempts);
  return (
    <Timeline bulletSize={22} lineWidth={2} className="story" aria-label={t('operator.traffic.requests.timeline')}>
      {moments.map((moment, index) => {
        const { icon, color, title, text } = wordsOf(moment, story, t, i18n.language);
        return (
          <Timeline.Item
            // biome-ignore lint/suspicious/noArrayIndexKey: moments neither move nor change
            key={index}
            bullet={
              <ThemeIcon size={22} radius="xl" variant="light" color={color} aria-hidden>
                {icon}
              </ThemeIcon>
            }
            title={
              <Text component="span" fz="sm" fw={550}>
                {title} <span className="story-time">+{durationText(moment.atMs)}</span>
              </Text>
            }
          >
            {text !== undefined && (
              <Text component="div" fz="xs" c="dimmed" className="wrap-any">
                {text}
              </Text>
            )}
          </Timeline.Item>
        );
      })}
    </Timeline>
  );
}

interface Words {
  readonly icon: ReactNode;
  readonly color: MantineColor;
  readonly title: string;
  readonly text?: ReactNode;
}

function wordsOf(moment: Moment, { request, attempts }: OperatorStory, t: TFunction, language: string): Words {
  switch (moment.kind) {
    case 'received': {
      const { operation, bytesIn } = request;
      const protocol = request.protocol ?? '–';
      const text = t('operator.traffic.requests.receivedText', {
        operation,
        protocol,
        bytes: bytesText(bytesIn, language),
      });
      return { icon: <IconDoorEnter size={13} />, color: 'blue', title: t('operator.traffic.requests.received'), text };
    }
    case 'story':
      return {
        icon: <IconListDetails size={13} />,
        color: 'gray',
        title: moment.line.by,
        text: eventWords(moment.line, { t, language }),
      };
    case 'dropped': {
      const title = t('operator.traffic.requests.droppedTitle');
      return { icon: <IconArrowsExchange size={13} />, color: 'yellow', title, text: moment.fields.join(', ') };
    }
    case 'attempt':
      return attemptWords(attempts.find(({ number }) => number === moment.attempt.number)!, moment, { t, language });
    case 'first-byte':
      return { icon: <IconMessage2 size={13} />, color: 'teal', title: t('operator.traffic.requests.firstByteAt') };
    case 'end': {
      const icon = moment.tone === 'good' ? <IconCheck size={13} /> : <IconX size={13} />;
      const title = t(`operator.traffic.requests.ended.${request.outcome}`);
      const bytes = bytesText(request.bytesOut, language);
      const text = t('operator.traffic.requests.endText', { status: request.status, bytes });
      return { icon, color: colors[moment.tone], title, text };
    }
  }
}

type AttemptMoment = Extract<Moment, { kind: 'attempt' }>;

interface Reader {
  readonly t: TFunction;
  readonly language: string;
}

function attemptWords(attempt: OperatorAttempt, { tone, notes }: AttemptMoment, reader: Reader): Words {
  const { t, language } = reader;
  const { number, provider, model, credential, protocol, result, status, durationMs, error, absorbed, borneBy } =
    attempt;
  const took = {
    status: status ?? t(`operator.traffic.requests.attemptResult.${result}`),
    time: durationText(durationMs),
  };
  const borne = { amount: exactMoneyText(absorbed, language) };
  return {
    icon: <IconSend size={13} />,
    color: colors[tone],
    title: t('operator.traffic.requests.attempt', { number, provider }),
    text: (
      <>
        <div>
          {t('operator.traffic.requests.attemptModel', { model, credential })} · {protocol}
        </div>
        {notes.length > 0 ? (
          notes.map((note) => <div key={note.kind}>{eventWords(note, reader)}</div>)
        ) : (
          <div>
            {t(`operator.traffic.requests.attemptResult.${result}`)} ·{' '}
            {t('operator.traffic.requests.attemptTook', took)}
          </div>
        )}
        {error !== null && <div>{failureWords(error, reader)}</div>}
        {borneBy === 'operator' && !isNothing(absorbed) && <div>{t('operator.traffic.requests.absorbed', borne)}</div>}
      </>
    ),
  };
}
