/** A strict vendor of one's own protocol: refuses what its documentation does not allow, and answers with plays in its own words. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { z } from '../../../core/contract/schema.ts';
import type { Play } from '../../matrix/scenario.ts';

export interface Words {
  /** Path of the only endpoint. */
  readonly path: string;
  readonly key: string;
  /** All that a request may have; strict. */
  readonly request: z.ZodType<{ readonly stream?: boolean | undefined }>;
  /** What the schema cannot say; a sentence. */
  problem(body: Body): string | undefined;
  readonly streamType: string;
  whole(play: Play, model: string): string;
  /** The pieces of a stream. */
  stream(play: Play, model: string): readonly string[];
  error(message: string): string;
}

export type Body = Record<string, unknown>;

interface RawAnswer {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

export interface StandIn {
  readonly origin: string;
  readonly bodies: Body[];
  /** What it answers from now on: a play, or these words as they are. */
  says: Play | RawAnswer;
  stop(): void;
}

export async function startStandIn(words: Words): Promise<StandIn> {
  const bodies: Body[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const reported = answerTo(incoming.url!, incoming.headers.authorization, Buffer.concat(chunks).toString());
      outgoing.writeHead(reported.status, { 'content-type': reported.type ?? 'application/json' });
      // Each cut falls inside a line, and most fall inside a character.
      const bytes = Buffer.from(reported.body);
      for (let at = 0; at < bytes.length; at += 37) outgoing.write(bytes.subarray(at, at + 37));
      outgoing.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const standIn: StandIn = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    says: { status: 500, body: '{}' },
    stop: () => void server.close(),
  };
  return standIn;

  function answerTo(path: string, key: string | undefined, text: string): RawAnswer {
    const refused = (status: number, message: string): RawAnswer => ({ status, body: words.error(message) });
    if (path !== words.path) return refused(404, `no such path: ${path}`);
    if (key !== `Bearer ${words.key}`) return refused(401, 'invalid api token');
    const body = JSON.parse(text) as Body;
    const parsed = words.request.safeParse(body);
    const problem = parsed.success ? words.problem(body) : JSON.stringify(parsed.error.issues);
    if (problem !== undefined) return refused(400, problem);
    bodies.push(body);
    const { says } = standIn;
    if ('status' in says) return says;
    const model = String(body['model']);
    if (body['stream'] === true)
      return { status: 200, type: words.streamType, body: words.stream(says, model).join('') };
    return { status: 200, body: words.whole(says, model) };
  }
}
