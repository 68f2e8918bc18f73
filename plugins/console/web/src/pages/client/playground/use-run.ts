/** One running call: its result, time and error, and its stop. */
import { useEffect, useRef, useState } from 'react';
import type { ApiCall } from '../../../calls/call.ts';
import { sendCall } from '../../../calls/send.ts';
import { type Problem, useProblem } from './problem.tsx';

interface State<Result> {
  readonly busy: boolean;
  readonly result?: Result;
  readonly problem?: Problem;
  readonly requestId?: string | undefined;
  readonly totalMs?: number;
}

export interface Run<Result> extends State<Result> {
  /** `read` makes the result from the answer. */
  start(call: ApiCall, read: (answer: Response, signal: AbortSignal) => Promise<Result>): Promise<void>;
  stop(): void;
}

/** What belongs to a call of another model is not shown. */
export function useRun<Result>(apiKey: string, model: string): Run<Result> {
  const problemOf = useProblem();
  const [{ of, ...state }, setState] = useState<State<Result> & { readonly of: string }>({ of: model, busy: false });
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  return {
    ...(of === model ? state : { busy: false }),
    stop: () => running.current?.abort(),
    async start(call, read) {
      running.current?.abort();
      const controller = new AbortController();
      const { signal } = controller;
      running.current = controller;
      const begun = performance.now();
      let requestId: string | undefined;
      setState({ of: model, busy: true });
      try {
        const answer = await sendCall(call, apiKey, signal);
        requestId = answer.headers.get('x-request-id') ?? undefined;
        const result = await read(answer, signal);
        if (!signal.aborted)
          setState({ of: model, busy: false, result, requestId, totalMs: performance.now() - begun });
      } catch (error) {
        // A call that has begun since then has its own state.
        if (signal.aborted) setState((now) => (running.current === controller ? { ...now, busy: false } : now));
        else setState({ of: model, busy: false, problem: problemOf(error), requestId });
      }
    },
  };
}
