/** Connections that were on their way to a worker when it died: they go to another one. */
import type { Worker } from 'node:cluster';

/** What Node's primary says to a worker with a connection (lib/internal/cluster/round_robin_handle.js). */
interface Delivery {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
}

/** And what the worker says to it. */
interface Receipt {
  readonly ack?: number;
}

type Send = (message: Delivery, ...rest: unknown[]) => boolean;

/**
 * Node's primary hands a connection to a worker and keeps it until the worker says whether it takes it. Of a worker that dies
 * in between it waits for ever, and so does the client. So the dead one's deliveries are refused in its name, upon which Node
 * gives them to the others. To be called once for each worker.
 */
export function returnUndelivered(worker: Worker): void {
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
    // Node must know already that this worker takes no more, or it would be given what it is said to refuse.
    if (child.connected || (child.exitCode === null && child.signalCode === null)) return;
    for (const ack of waiting) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
    waiting.clear();
  };
  worker.on('exit', refuse);
  worker.on('disconnect', refuse);
  // A delivery to a process that has just died fails; its end is told by `exit`.
  worker.on('error', () => {});
}
