/** A vendor on loopback that speaks one protocol, strictly, and plays the scripted agent. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { moveFor, must, Refused, type Task } from './agent.ts';
import { chat } from './speak-chat.ts';
import { gemini } from './speak-gemini.ts';
import { messages } from './speak-messages.ts';
import { responses } from './speak-responses.ts';
import type { Json, Speech } from './speech.ts';

export const protocols = ['chat', 'responses', 'messages', 'gemini'] as const;
export type ProtocolName = (typeof protocols)[number];

const speeches: Readonly<Record<ProtocolName, Speech>> = { chat, responses, messages, gemini };

/** One request that reached the vendor, and what became of it. */
interface Exchanged {
  readonly path: string;
  readonly body: Json;
  readonly status: number;
  /** What the agent did, or why it refused. */
  readonly outcome: string;
}

export interface AgentVendor {
  /** Base URL for a provider that speaks this protocol. */
  readonly base: string;
  /** Oldest first. */
  readonly requests: Exchanged[];
  stop(): Promise<void>;
}

/** The model's name here: clients know it by others. */
export const upstreamModel = 'vendors-own-model';

/** `task`: what the agent does. */
export async function startAgentVendor(protocol: ProtocolName, task: () => Task): Promise<AgentVendor> {
  const speech = speeches[protocol];
  const requests: Exchanged[] = [];
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing, speech, task(), requests));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}${speech.base}`,
    requests,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  speech: Speech,
  task: Task,
  requests: Exchanged[],
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const url = new URL(incoming.url!, 'http://vendor');
  const body: Json = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
  const { status, type, text, outcome } = answerTo(speech, url, body, task);
  requests.push({ path: url.pathname, body, status, outcome });
  outgoing.writeHead(status, { 'content-type': type });
  outgoing.end(text);
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly outcome: string;
}

function answerTo(speech: Speech, url: URL, body: Json, task: Task): Answer {
  const json = (status: number, value: unknown, outcome: string): Answer => ({
    status,
    type: 'application/json',
    text: JSON.stringify(value),
    outcome,
  });
  try {
    const counted = speech.countTokens(url.pathname);
    if (counted !== undefined) return json(200, counted, 'counted');
    if (!speech.isRequest(url.pathname)) return json(404, { error: { message: 'Not found', code: 404 } }, 'not found');
    const requested = speech.read(body, url);
    must(requested.model === upstreamModel, `the model is called ${requested.model}`);
    const move = moveFor(requested, task, JSON.stringify(body));
    const outcome = move.kind === 'call' ? `called ${move.tool.name}` : move.text;
    if (!requested.stream) return json(200, speech.whole(move), outcome);
    return { status: 200, type: 'text/event-stream', text: speech.stream(move), outcome };
  } catch (error) {
    if (!(error instanceof Refused)) return json(500, { error: { message: 'broken' } }, `broken: ${error}`);
    const refusal = { message: error.message, type: 'invalid_request_error', code: 400, status: 'INVALID_ARGUMENT' };
    return json(400, { type: 'error', error: refusal }, `refused: ${error.message}`);
  }
}
