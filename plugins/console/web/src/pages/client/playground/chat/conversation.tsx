/** The messages of a conversation, with the answer as it is streamed. */
import { Text } from '@mantine/core';
import { IconMessage2 } from '@tabler/icons-react';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { Markdown } from '../../../../parts/markdown.tsx';
import { EmptyState } from '../../../../parts/states.tsx';
import type { Message, Step, Turn } from './turn.ts';

interface ConversationProps {
  /** Its model, where there are two. */
  readonly name?: string;
  readonly messages: readonly Message[];
  readonly turn: Turn | undefined;
  readonly busy: boolean;
}

export function Conversation({ name, messages, turn, busy }: ConversationProps) {
  const { t } = useTranslation();
  const running = busy && turn !== undefined;
  const { box, look } = useFollowing(messages, turn?.text.length ?? 0);
  if (messages.length === 0)
    return (
      <div className="conversation">
        <EmptyState icon={IconMessage2} title={t('client.playground.empty')} hint={t('client.playground.emptyHint')} />
      </div>
    );
  return (
    <section
      className="conversation"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard
      tabIndex={0}
      onScroll={look}
      aria-label={name ?? t('client.playgroundTitle')}
      aria-live="polite"
      aria-busy={busy}
    >
      {name !== undefined && (
        <Text fz="xs" fw={550} c="dimmed">
          {name}
        </Text>
      )}
      {/* The running answer stands in the list already: when it ends, what a person has opened in it stays open. */}
      {(running ? [...messages, messageOf(turn)] : messages).map((message, index) => (
        <Said
          // biome-ignore lint/suspicious/noArrayIndexKey: what was said keeps its place
          key={index}
          message={message}
          thinking={running && index === messages.length && turn.text === ''}
          onOpen={() => requestAnimationFrame(look)}
        />
      ))}
    </section>
  );
}

const messageOf = ({ text, reasoning, steps }: Turn): Message => ({
  ...{ role: 'assistant', content: text === '' ? '…' : text, reasoning, steps },
});

/** Nearer to the end than a line: the end is in sight. */
const nearPx = 40;

/** Keeps the end of what is said in sight, until its reader scrolls or opens something; a question of theirs is shown in any case. */
function useFollowing(messages: readonly Message[], written: number) {
  const box = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const look = () => {
    if (box.current === null) return;
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    follows.current = scrollHeight - scrollTop - clientHeight < nearPx;
  };
  const asked = messages.filter(({ role }) => role === 'user').length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: at each question
  useEffect(() => {
    follows.current = true;
  }, [asked]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: at whatever is said
  useEffect(() => {
    // Some browsers answer with a promise, which is no clean-up.
    if (follows.current) void box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [messages.length, written]);
  return { box, look };
}

interface SaidProps {
  readonly message: Message;
  /** Thoughts are open while there is nothing else yet. */
  readonly thinking: boolean;
  readonly onOpen: () => void;
}

function Said({ message: { role, content, images = [], reasoning = '', steps = [] }, thinking, onOpen }: SaidProps) {
  const { t } = useTranslation();
  return (
    <div className="said" data-role={role}>
      {reasoning !== '' && (
        <details className="thoughts" open={thinking || undefined}>
          {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
          <summary onClick={onOpen}>{t('client.playground.thoughts')}</summary>
          <div className="said-text">{reasoning}</div>
        </details>
      )}
      {steps.map((step, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: what was done keeps its place
        <Done key={index} step={step} onOpen={onOpen} />
      ))}
      {images.map((image) => (
        <img key={image} src={image} alt={t('client.playground.image')} className="said-image" />
      ))}
      {role === 'assistant' ? (
        <Markdown text={content} />
      ) : (
        <Text fz="sm" component="div" className="said-text">
          {content}
        </Text>
      )}
    </div>
  );
}

interface DoneProps {
  readonly step: Step;
  readonly onOpen: () => void;
}

function Done({ step: { name, input, output, failed }, onOpen }: DoneProps) {
  const { t } = useTranslation();
  return (
    <details className="thoughts">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary onClick={onOpen}>
        {t('client.playground.toolCalled', { tool: name })}
        {failed && ` · ${t('client.playground.toolFailed')}`}
      </summary>
      <div className="said-text">
        {input}
        {'\n'}→ {output}
      </div>
    </details>
  );
}
