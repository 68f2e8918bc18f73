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
      aria-label={name ?? t('client.playgroundTitle')}
      aria-live="polite"
      aria-busy={busy}
    >
      {name !== undefined && (
        <Text fz="xs" fw={550} c="dimmed">
          {name}
        </Text>
      )}
      {messages.map((message, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: what was said keeps its place
        <Said key={index} message={message} />
      ))}
      {busy && turn !== undefined && (
        <Said
          message={{
            ...{ role: 'assistant', content: turn.text === '' ? '…' : turn.text },
            ...{ reasoning: turn.reasoning, steps: turn.steps },
          }}
          thinking={turn.text === ''}
        />
      )}
    </section>
  );
}

interface SaidProps {
  readonly message: Message;
  /** Thoughts are open while there is nothing else yet. */
  readonly thinking?: boolean;
}

function Said({ message: { role, content, images = [], reasoning = '', steps = [] }, thinking = false }: SaidProps) {
  const { t } = useTranslation();
  return (
    <div className="said" data-role={role}>
      {reasoning !== '' && (
        <details className="thoughts" open={thinking || undefined}>
          <summary>{t('client.playground.thoughts')}</summary>
          <div className="said-text">{reasoning}</div>
        </details>
      )}
      {steps.map((step, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: what was done keeps its place
        <Done key={index} step={step} />
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

function Done({ step: { name, input, output, failed } }: { readonly step: Step }) {
  const { t } = useTranslation();
  return (
    <details className="thoughts">
      <summary>
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
