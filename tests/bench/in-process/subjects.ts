/** What is measured in process: who forwards, what the client asks for, and what the vendor answers. */
import { type ProtocolName, wordsOf } from '../words.ts';
import type { GatewayKind } from './gateways.ts';
import type { Script } from './vendor.ts';

export interface Subject {
  readonly kind: GatewayKind | 'bare forwarder';
  readonly path: string;
  readonly body: string;
  readonly script: Script;
  /** Last bytes of each answer as the client gets it. */
  readonly end: string;
  /** What an answer is divided by: its chunks, or 1. */
  readonly units: number;
}

const prompt = 'a'.repeat(900);
const text = 'abcdefghij'.repeat(12);
const chunks = 400;

function whole(kind: Subject['kind']): Subject {
  const { path } = wordsOf('chat').request('');
  const answer = JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(600) }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 },
  });
  return { kind, path, body: wholeBody('bench-chat'), script: wholeScript(answer), end: answer.slice(-9), units: 1 };
}

function wholeBody(model: string): string {
  return JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] });
}

/** A client of chat completions before an upstream of the messages protocol. */
function translated(): Subject {
  const answer = JSON.stringify({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'x'.repeat(600) }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 200 },
  });
  const { path } = wordsOf('chat').request('');
  return { kind: 'full', path, body: wholeBody('bench-messages'), script: wholeScript(answer), end: '}', units: 1 };
}

function stream(kind: Subject['kind'], client: ProtocolName, upstream: ProtocolName): Subject {
  const { path, body } = wordsOf(client, upstream).request(prompt);
  const { head, delta, tail } = wordsOf(upstream);
  const chunk = delta('text', text)!;
  const parts = [head('text') + chunk, ...Array<string>(chunks - 2).fill(chunk), tail(text.repeat(chunks))];
  const script = scriptOf({ 'content-type': 'text/event-stream' }, parts);
  return { kind, path, body, script, end: '0\r\n\r\n', units: chunks };
}

function wholeScript(answer: string): Script {
  return scriptOf({ 'content-type': 'application/json', 'content-length': String(answer.length) }, [answer]);
}

function scriptOf(headers: Record<string, string>, parts: readonly string[]): Script {
  return { headers, chunks: parts.map((part) => Buffer.from(part)) };
}

export const subjects = {
  'bare forwarder': whole('bare forwarder'),
  passthrough: whole('passthrough'),
  relay: whole('relay'),
  full: whole('full'),
  ruleless: whole('ruleless'),
  translated: translated(),
  'bare forwarder, chunk': stream('bare forwarder', 'chat', 'chat'),
  'relayed chunk': stream('full', 'chat', 'chat'),
  'translated chunk': stream('full', 'chat', 'messages'),
  'guarded relayed chunk': stream('guarded', 'chat', 'chat'),
  'guarded translated chunk': stream('guarded', 'chat', 'messages'),
} satisfies Record<string, Subject>;

export type SubjectName = keyof typeof subjects;
