/** Calls the gateway as any program would: a streamed answer with its time, tokens and cost. */
import { grown, type ProtocolName, type TalkRequest } from './protocols.ts';

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** As data URLs. */
  readonly images?: readonly string[];
  /** What the model thought before it, for people: it is not sent again. */
  readonly reasoning?: string;
}
/** What is left as the vendor has it is absent. */
export interface Parameters {
  readonly temperature?: number;
  readonly maxTokens?: number;
}
export interface Turn {
  readonly text: string;
  readonly reasoning: string;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  readonly requestId: string | undefined;
}
export const noTurn: Turn = {
  text: '',
  reasoning: '',
  firstByteMs: undefined,
  totalMs: undefined,
  tokensIn: undefined,
  tokensOut: undefined,
  requestId: undefined,
};

/** The call was refused, or the answer broke off. */
export class TalkError extends Error {
  /** 0: an answer had begun. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'TalkError';
    this.status = status;
  }
}

/** The same request for a terminal; quotes of the shell are doubled as it wants them, and images are shortened. */
export function curlOf(base: string, { path, headers, body }: TalkRequest): string {
  const text = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    `curl -N '${base}${path}' \\`,
    ...Object.entries(headers).map(([name, value]) => `  -H "${name}: ${value}" \\`),
    '  -H "content-type: application/json" \\',
    `  -d '${text.replaceAll(imageData, (data) => `${data.slice(0, 40)}…`)}'`,
  ].join('\n');
}
/** Base64 of an image; no word of a conversation is so long without a space. */
const imageData = /[A-Za-z0-9+/=]{400,}/g;

/** Asks, and yields the turn as it grows. */
export async function* talk(
  protocol: ProtocolName,
  { path, headers, body }: TalkRequest,
  signal: AbortSignal,
): AsyncGenerator<Turn> {
  const begun = performance.now();
  const answer = await fetch(path, {
    method: 'POST',
    signal,
    // The key alone authenticates: no cookie of the console is sent.
    credentials: 'omit',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new TalkError(answer.status, messageOf(await answer.text()));
  let turn: Turn = { ...noTurn, requestId: answer.headers.get('x-request-id') ?? undefined };
  for await (const data of eventsOf(answer.body!)) {
    if (data === '[DONE]') break;
    turn = grown(protocol, { ...turn, firstByteMs: turn.firstByteMs ?? performance.now() - begun }, data);
    yield turn;
  }
  yield { ...turn, totalMs: performance.now() - begun };
}

/** Data of server-sent events, however the network cut them. Comments are left out. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** The message of an error, in any of the gateway's shapes. */
function messageOf(text: string): string {
  try {
    const parsed = JSON.parse(text) as { error?: { message?: string }; message?: string };
    return parsed.error?.message ?? parsed.message ?? '';
  } catch {
    return '';
  }
}
