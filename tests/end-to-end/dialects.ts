/** The four protocols as a client speaks them by hand: where to, what to send, and how success and failure look. */

export const dialectNames = ['chat', 'responses', 'messages', 'gemini'] as const;
export type DialectName = (typeof dialectNames)[number];

export interface Question {
  readonly model: string;
  readonly prompt: string;
  readonly stream?: boolean;
  /** Further members of the body. */
  readonly more?: object;
}

interface Dialect {
  path(question: Question): string;
  body(question: Question): object;
  key(key: string): Record<string, string>;
  /** What only a stream that ended well contains. */
  readonly terminal: RegExp;
  /** What a stream contains that broke off. */
  readonly streamError: RegExp;
  /** Whether `json` is an error body of this protocol; its kind in the protocol's words. */
  errorType(json: ErrorBody): unknown;
}

interface ErrorBody {
  readonly type?: string;
  readonly error?: { readonly type?: string; readonly status?: string; readonly code?: unknown };
}

const user = (prompt: string) => [{ role: 'user', content: prompt }];
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

export const dialects: Record<DialectName, Dialect> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: ({ model, prompt, stream, more }) => ({ model, messages: user(prompt), stream: stream ?? false, ...more }),
    key: bearer,
    terminal: /^data: \[DONE\]/m,
    streamError: /^data: \{"error":/m,
    errorType: ({ error }) => error?.type,
  },
  responses: {
    path: () => '/v1/responses',
    body: ({ model, prompt, stream, more }) => ({ model, input: prompt, stream: stream ?? false, ...more }),
    key: bearer,
    terminal: /^event: response\.(?:completed|incomplete)$/m,
    streamError: /^event: (?:error|response\.failed)$/m,
    errorType: ({ error }) => error?.type,
  },
  messages: {
    path: () => '/v1/messages',
    body: ({ model, prompt, stream, more }) => ({
      model,
      max_tokens: 4000,
      messages: user(prompt),
      stream: stream ?? false,
      ...more,
    }),
    key: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
    terminal: /^event: message_stop$/m,
    streamError: /^event: error$/m,
    errorType: ({ type, error }) => (type === 'error' ? error?.type : undefined),
  },
  gemini: {
    path: ({ model, stream }) =>
      `/v1beta/models/${model}:${stream === true ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: ({ prompt, more }) => ({ contents: [{ role: 'user', parts: [{ text: prompt }] }], ...more }),
    key: (key) => ({ 'x-goog-api-key': key }),
    terminal: /"finishReason":/,
    streamError: /^data: \{\s*"error":/m,
    errorType: ({ error }) => error?.status,
  },
};
