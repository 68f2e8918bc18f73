/** Asks for the figures again soon after the gateway has said that something happened, however often it says so. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useLive } from '../../../api/live.ts';
import { answerKey } from '../parts/load.tsx';

/** Sums are cheap; charts and groups may lag a little. */
const afterMs: Readonly<Record<string, number>> = {
  '/admin/monitor': 1_000,
  '/admin/monitor/series': 5_000,
  '/admin/monitor/groups': 3_000,
};

export function useMonitorRefresh(): void {
  const client = useQueryClient();
  const due = useRef(new Map<string, ReturnType<typeof setTimeout>>());
  useLive('monitor', () => {
    for (const [path, ms] of Object.entries(afterMs)) {
      if (due.current.has(path)) continue;
      const ask = () => {
        due.current.delete(path);
        void client.invalidateQueries({ queryKey: answerKey(path) });
      };
      due.current.set(path, setTimeout(ask, ms));
    }
  });
  useEffect(() => {
    const timers = due.current;
    return () => {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    };
  }, []);
}
