/** Talks to the gateway as any program would: a chat completion, streamed, with the measures that people ask for. */

export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
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

export const bodyOf = (model: string, messages: readonly Message[]) => ({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});

/** The same request for a terminal; quotes of the shell are doubled as it wants them. */
export function curlOf(base: string, key: string, model: string, messages: readonly Message[]): string {
  const body = JSON.stringify(bodyOf(model, messages), null, 2).replaceAll("'", "'\\''");
  return [
    `curl -N ${base}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${key}" \\`,
    '  -H "Content-Type: application/json" \\',
    `  -d '${body}'`,
  ].join('\n');
}

/** Asks, and yields the turn as it grows. */
export async function* talk(
  key: string,
  model: string,
  messages: readonly Message[],
  signal: AbortSignal,
): AsyncGenerator<Turn> {
  const begun = performance.now();
  const answer = await fetch('/v1/chat/completions', {
    method: 'POST',
    signal,
    // The key alone authenticates: no cookie of the console is sent.
    credentials: 'omit',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(model, messages)),
  });
  if (!answer.ok) throw new TalkError(answer.status, messageOf(await answer.text()));
  let turn: Turn = { ...noTurn, requestId: answer.headers.get('x-request-id') ?? undefined };
  for await (const data of eventsOf(answer.body!)) {
    if (data === '[DONE]') break;
    turn = grown({ ...turn, firstByteMs: turn.firstByteMs ?? performance.now() - begun }, data);
    yield turn;
  }
  yield { ...turn, totalMs: performance.now() - begun };
}

interface Chunk {
  readonly error?: { readonly message?: string };
  readonly choices?: readonly { readonly delta?: { readonly content?: string; readonly reasoning_content?: string } }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
}

/** A turn with what one event brings. */
export function grown(turn: Turn, data: string): Turn {
  const chunk = JSON.parse(data) as Chunk;
  if (chunk.error !== undefined) throw new TalkError(0, chunk.error.message ?? '');
  const delta = chunk.choices?.[0]?.delta;
  return {
    ...turn,
    text: turn.text + (delta?.content ?? ''),
    reasoning: turn.reasoning + (delta?.reasoning_content ?? ''),
    tokensIn: chunk.usage?.prompt_tokens ?? turn.tokensIn,
    tokensOut: chunk.usage?.completion_tokens ?? turn.tokensOut,
  };
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
