/** Sends a request over a real socket, and may leave in the middle. */
import { Agent, request as send } from 'node:http';
import type { Wording } from './scenario.ts';

export interface Reply {
  readonly status: number;
  readonly type: string;
  /** Names of what the gateway left out. */
  readonly dropped: string | undefined;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 });

/** Resolves with everything that came; a connection that breaks rejects. */
export function post(origin: string, { path, headers, body }: Wording): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = send(
      `${origin}${path}`,
      { agent, method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({
            status: answer.statusCode!,
            type: answer.headers['content-type'] ?? '',
            dropped: answer.headers['x-gateway-dropped'] as string | undefined,
            retryAfter: answer.headers['retry-after'],
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Leaves when `enough` says so of what came, or when `now` resolves. */
export function postAndLeave(
  origin: string,
  { path, headers, body }: Wording,
  leave: { enough: (body: string) => boolean; now?: Promise<void> },
): Promise<void> {
  return new Promise((resolve) => {
    let text = '';
    const request = send(
      `${origin}${path}`,
      { agent: false, method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      (answer) => {
        answer.on('error', () => {});
        answer.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          if (leave.enough(text)) request.destroy();
        });
      },
    );
    request.on('error', () => {});
    request.on('close', () => resolve());
    void leave.now?.then(() => request.destroy());
    request.end(body);
  });
}

/** Lets go of the sockets that are kept for the next request. */
export function hangUp(): void {
  agent.destroy();
}
