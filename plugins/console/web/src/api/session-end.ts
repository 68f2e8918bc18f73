/** Whether the session that the pages were opened in has ended meanwhile. */
import { useSyncExternalStore } from 'react';

let ended = false;
const watchers = new Set<() => void>();

/** Notified by each call that is refused for want of a session. */
export function setSessionEnded(value: boolean): void {
  if (ended === value) return;
  ended = value;
  for (const watcher of watchers) watcher();
}

export function useSessionEnded(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => ended,
  );
}
