/** A conversation with a model: its turns, the turn that is being streamed, and stopping it. */
import { useEffect, useRef, useState } from 'react';
import type { ApiCall } from '../../../../calls/call.ts';
import { type Problem, useProblem } from '../problem.tsx';
import { type Conversation, callOf, type ProtocolName } from './protocols.ts';
import { talk } from './talk.ts';
import { type Message, noTurn, type Turn } from './turn.ts';

export function useTalk(
  key: string,
  protocol: ProtocolName,
  { model, system, parameters, tools }: Omit<Conversation, 'messages'>,
) {
  const problemOf = useProblem();
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [turn, setTurn] = useState<Turn>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [sent, setSent] = useState<ApiCall>();
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const ask = async (content: string, images: readonly string[]) => {
    const question: Message = { role: 'user', content, ...(images.length === 0 ? {} : { images }) };
    const said: readonly Message[] = [...messages, question];
    const call = callOf(protocol, { model, system: system.trim(), messages: said, parameters, tools });
    const mine = new AbortController();
    running.current = mine;
    setMessages(said);
    setSent(call);
    setTurn(noTurn);
    setProblem(undefined);
    setBusy(true);
    const latest = await written(call, mine);
    if (running.current !== mine) return;
    // What came before a stop stays in the conversation.
    if (latest.text !== '' || latest.steps.length > 0) setMessages([...said, answerOf(latest)]);
    setBusy(false);
  };
  /** What the answer was when it ended, also by a fault or a stop. */
  const written = async (call: ApiCall, mine: AbortController): Promise<Turn> => {
    let latest = noTurn;
    try {
      for await (latest of talk(protocol, call, key, mine.signal)) if (running.current === mine) setTurn(latest);
    } catch (error) {
      if (!mine.signal.aborted) setProblem(problemOf(error));
    }
    return latest;
  };
  const reset = () => {
    running.current?.abort();
    // What it had written does not come into the next conversation.
    running.current = undefined;
    setBusy(false);
    setMessages([]);
    setSent(undefined);
    setTurn(undefined);
    setProblem(undefined);
  };
  return { messages, sent, turn, busy, problem, ask, reset, stop: () => running.current?.abort() };
}

function answerOf({ text, reasoning, steps }: Turn): Message {
  const kept = { ...(reasoning === '' ? {} : { reasoning }), ...(steps.length === 0 ? {} : { steps }) };
  return { role: 'assistant', content: text, ...kept };
}
