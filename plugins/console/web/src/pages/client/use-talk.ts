/** A conversation with a model: what was said, what is being said, how to stop it. */
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Message, noTurn, TalkError, type Turn, talk } from './talk.ts';

export function useTalk(key: string, model: string, instructions: string) {
  const { t } = useTranslation();
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [turn, setTurn] = useState<Turn>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [sent, setSent] = useState<readonly Message[]>([]);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const wordsOf = (error: unknown) => {
    if (running.current?.signal.aborted) return undefined;
    if (!(error instanceof TalkError)) return t('client.playground.cut');
    if (error.message !== '') return error.message;
    return error.status === 0 ? t('client.playground.cut') : t('client.playground.failed', { status: error.status });
  };

  const ask = async (question: string) => {
    const said: readonly Message[] = [...messages, { role: 'user', content: question }];
    const system: readonly Message[] =
      instructions.trim() === '' ? [] : [{ role: 'system', content: instructions.trim() }];
    running.current = new AbortController();
    setMessages(said);
    setSent([...system, ...said]);
    setTurn(noTurn);
    setProblem(undefined);
    setBusy(true);
    let latest: Turn = noTurn;
    try {
      for await (latest of talk(key, model, [...system, ...said], running.current.signal)) setTurn(latest);
    } catch (error) {
      setProblem(wordsOf(error));
    }
    // What came before a stop stays in the conversation.
    if (latest.text !== '') setMessages([...said, { role: 'assistant', content: latest.text }]);
    setBusy(false);
  };
  const reset = () => {
    running.current?.abort();
    setMessages([]);
    setSent([]);
    setTurn(undefined);
    setProblem(undefined);
  };
  return { messages, sent, turn, busy, problem, ask, reset, stop: () => running.current?.abort() };
}
