/** A stretch of network: it can be slow, break, lead elsewhere, to several in turn, or lose a database's answer to a commit. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** How late whatever the server says arrives. */
  delayMs: number;
  /** Where connections lead from now on, to one after the other; those that there are stay. */
  lead(...ports: number[]): void;
  /** Breaks every connection. */
  cut(): void;
  /** The next connections on which a transaction is committed break once it is, before their client hears of it. */
  loseCommits(count: number): void;
  /** The next connection on which a transaction is committed says nothing any more from then on, and stays. */
  silenceCommit(): void;
  /** Answers to commits that were lost so far. */
  readonly lost: number;
  close(): void;
}

/** A simple query (Q, its length, its text): https://www.postgresql.org/docs/current/protocol-message-formats.html */
const commit = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1');

/** Listens on a free port of this machine and leads to another. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<{ near: Socket; far: Socket }>();
  let ways = [target];
  let turn = 0;
  let toLose = 0;
  let lost = 0;
  let silences = false;
  const server = createServer((near) => {
    const far = connect(ways[turn++ % ways.length]!, '127.0.0.1');
    const pair = { near, far };
    pairs.add(pair);
    let loses = false;
    let isSilent = false;
    const pass = inOrder((chunk) => near.write(chunk));
    const end = () => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.setNoDelay(true).on('error', end).on('close', end);
    near.on('data', (chunk: Buffer) => {
      if (toLose > 0 && chunk.includes(commit)) {
        toLose -= 1;
        loses = true;
      }
      if (silences && chunk.includes(commit)) {
        silences = false;
        isSilent = true;
      }
      far.write(chunk);
    });
    far.on('data', (chunk: Buffer) => {
      if (isSilent) lost += 1;
      else if (loses) {
        lost += 1;
        end();
      } else pass(chunk, proxy.delayMs);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = {
    port: (server.address() as { port: number }).port,
    delayMs: 0,
    lead(...ports: number[]) {
      ways = ports;
    },
    cut() {
      for (const { near, far } of pairs) {
        near.destroy();
        far.destroy();
      }
    },
    loseCommits(count: number) {
      toLose = count;
    },
    silenceCommit() {
      silences = true;
    },
    get lost() {
      return lost;
    },
    close() {
      server.close();
      proxy.cut();
    },
  };
  return proxy;
}

/** Passes bytes on after the delay; none overtake earlier ones, also when the delay has become shorter. */
function inOrder(write: (chunk: Buffer) => void): (chunk: Buffer, delayMs: number) => void {
  const waiting: { readonly chunk: Buffer; readonly at: number }[] = [];
  const next = () => {
    while (waiting.length > 0 && waiting[0]!.at <= performance.now()) write(waiting.shift()!.chunk);
    if (waiting.length > 0) setTimeout(next, waiting[0]!.at - performance.now());
  };
  return (chunk, delayMs) => {
    if (delayMs === 0 && waiting.length === 0) {
      write(chunk);
      return;
    }
    waiting.push({ chunk, at: Math.max(waiting.at(-1)?.at ?? 0, performance.now() + delayMs) });
    if (waiting.length === 1) next();
  };
}
