/** Redirects connections that were in delivery to a worker when it died. */
import type { Worker } from 'node:cluster';

/** The message of Node's primary that delivers a connection to a worker (lib/internal/cluster/round_robin_handle.js). */
interface Delivery {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
}

/** The worker's acknowledgement. */
interface Receipt {
  readonly ack?: number;
}

type Send = (message: Delivery, ...rest: unknown[]) => boolean;

/**
 * Node's primary waits for a worker's acknowledgement of each connection, for ever if the worker has died. This refuses a dead
 * worker's deliveries on its behalf, so that Node delivers them to another worker. Call once for each worker.
 */
export function returnOrphanedConnection(worker: Worker): void {
  const child = worker.process;
  const waiting = new Set<number>();
  const send = child.send.bind(child) as Send;
  child.send = ((message, ...rest) => {
    if (message.act === 'newconn' && message.seq !== undefined) waiting.add(message.seq);
    return send(message, ...rest);
  }) as Send as typeof child.send;
  child.on('internalMessage', ({ ack }: Receipt) => {
    if (ack !== undefined) waiting.delete(ack);
  });
  const refuse = () => {
    // Only after Node has removed the worker, or it would deliver the refused connections to it again.
    if (child.connected || (child.exitCode === null && child.signalCode === null)) return;
    for (const ack of waiting) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
    waiting.clear();
  };
  worker.on('exit', refuse);
  worker.on('disconnect', refuse);
  // A delivery to a process that has just died fails; `exit` follows.
  worker.on('error', () => {});
}
