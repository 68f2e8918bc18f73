/** A conversation with a model: its turns, the turn that is being streamed, and stopping it. */
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Conversation, type ProtocolName, requestOf } from './protocols.ts';
import { type Message, noTurn, TalkError, type Turn, talk } from './talk.ts';

export interface Problem {
  readonly text: string;
  /** Of the answer; 0: it broke off. */
  readonly status: number;
}

export function useTalk(
  key: string,
  protocol: ProtocolName,
  { model, system, parameters }: Omit<Conversation, 'messages'>,
) {
  const { t } = useTranslation();
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [turn, setTurn] = useState<Turn>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [sent, setSent] = useState<{ readonly protocol: ProtocolName; readonly conversation: Conversation }>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const problemOf = (error: unknown): Problem | undefined => {
    if (running.current?.signal.aborted) return undefined;
    const status = error instanceof TalkError ? error.status : 0;
    if (error instanceof TalkError && error.message !== '') return { text: error.message, status };
    return { text: status === 0 ? t('client.playground.cut') : t('client.playground.failed', { status }), status };
  };

  const ask = async (content: string, images: readonly string[]) => {
    const question: Message = { role: 'user', content, ...(images.length === 0 ? {} : { images }) };
    const said: readonly Message[] = [...messages, question];
    const conversation = { model, system: system.trim(), messages: said, parameters };
    running.current = new AbortController();
    setMessages(said);
    setSent({ protocol, conversation });
    setTurn(noTurn);
    setProblem(undefined);
    setBusy(true);
    let latest: Turn = noTurn;
    try {
      const request = requestOf(protocol, conversation, key);
      for await (latest of talk(protocol, request, running.current.signal)) setTurn(latest);
    } catch (error) {
      setProblem(problemOf(error));
    }
    // What came before a stop stays in the conversation.
    const { text, reasoning } = latest;
    if (text !== '')
      setMessages([...said, { role: 'assistant', content: text, ...(reasoning === '' ? {} : { reasoning }) }]);
    setBusy(false);
  };
  const reset = () => {
    running.current?.abort();
    setMessages([]);
    setSent(undefined);
    setTurn(undefined);
    setProblem(undefined);
  };
  return { messages, sent, turn, busy, problem, ask, reset, stop: () => running.current?.abort() };
}
