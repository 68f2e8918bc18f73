/** The messages of a conversation, with the answer as it is streamed. */
import { Text } from '@mantine/core';
import { IconMessage2 } from '@tabler/icons-react';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { EmptyState } from '../../parts/states.tsx';
import type { Message, Turn } from './talk.ts';

interface ConversationProps {
  readonly messages: readonly Message[];
  readonly turn: Turn | undefined;
  readonly busy: boolean;
}

export function Conversation({ messages, turn, busy }: ConversationProps) {
  const { t } = useTranslation();
  const box = useRef<HTMLElement>(null);
  const length = messages.length + (turn?.text.length ?? 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows the end of what is said
  useEffect(() => {
    // Some browsers answer with a promise, which is no clean-up.
    void box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [length]);
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
      aria-label={t('client.playground.title')}
      aria-live="polite"
      aria-busy={busy}
    >
      {messages.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: what was said keeps its place
        <Said key={index} by={role} content={content} />
      ))}
      {busy && turn !== undefined && (
        <>
          {turn.reasoning !== '' && turn.text === '' && (
            <Text fz="sm" c="dimmed" className="said-text" fs="italic">
              {turn.reasoning.slice(-400)}
            </Text>
          )}
          <Said by="assistant" content={turn.text === '' ? '…' : turn.text} />
        </>
      )}
    </section>
  );
}

function Said({ by, content }: { readonly by: Message['role']; readonly content: string }) {
  return (
    <div className="said" data-role={by}>
      <Text fz="sm" component="div" className="said-text">
        {content}
      </Text>
    </div>
  );
}
