/** Live numbers: one WebSocket for the whole app; where it cannot connect, queries poll. */
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { tabAccount } from './client.ts';
import { setSessionEnded } from './session-end.ts';

export type Topic = 'balance' | 'monitor' | 'tasks';
interface LiveMessage {
  readonly topic: Topic;
  readonly [member: string]: unknown;
}
type Listener = (message: LiveMessage) => void;

/** The code by which the gateway closes the socket of a session that has ended. */
const signedOut = 4401;

const listeners = new Map<Topic, Set<Listener>>();
const watchers = new Set<() => void>();
let socket: WebSocket | undefined;
let connected = false;
let failures = 0;
let retry: ReturnType<typeof setTimeout> | undefined;

function setConnected(value: boolean) {
  if (connected === value) return;
  connected = value;
  for (const watcher of watchers) watcher();
}

function connect() {
  if (socket !== undefined || listeners.size === 0) return;
  socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/console/live?account=${tabAccount()}`);
  socket.onopen = () => {
    failures = 0;
    setConnected(true);
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as LiveMessage;
    for (const listener of listeners.get(message.topic) ?? []) listener(message);
  };
  socket.onclose = ({ code }) => {
    socket = undefined;
    setConnected(false);
    if (code === signedOut) setSessionEnded(true);
    failures += 1;
    if (listeners.size > 0) retry = setTimeout(connect, Math.min(60_000, 1000 * 2 ** failures));
  };
}

function listen(topic: Topic, listener: Listener): () => void {
  const set = listeners.get(topic) ?? new Set();
  listeners.set(topic, set.add(listener));
  connect();
  return () => {
    set.delete(listener);
    if (set.size === 0) listeners.delete(topic);
    if (listeners.size > 0) return;
    clearTimeout(retry);
    socket?.close();
  };
}

/** Whether numbers are pushed; otherwise pages ask every few seconds. */
export function useConnected(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connected,
  );
}

/** The polling interval of a live query; none while numbers are pushed. */
export function useLiveInterval(pollMs = 5000): number | false {
  return useConnected() ? false : pollMs;
}

/** Calls back for each message of a topic while the component is shown. */
export function useLive(topic: Topic, onMessage: Listener): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the listener belongs to the topic, a new closure is no new wish
  useEffect(() => listen(topic, onMessage), [topic]);
}

/** Asks the queries under `key` again when a message of the topic comes. */
export function useLiveRefresh(topic: Topic, key: QueryKey): void {
  const client = useQueryClient();
  useLive(topic, () => void client.invalidateQueries({ queryKey: key }));
}
