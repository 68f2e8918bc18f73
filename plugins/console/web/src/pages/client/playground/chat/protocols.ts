/** The four protocols of clients as the playground speaks them: requests, and the content of one event of a stream. Pure. */
import type { ApiCall } from '../../../../calls/call.ts';
import { type Message, type Parameters, type Step, TalkError, type Turn } from './turn.ts';

export interface Conversation {
  readonly model: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly parameters: Parameters;
  /** Servers and bundles of the gateway with tools that the model may call. */
  readonly tools: readonly string[];
}
interface TalkProtocol {
  call(conversation: Conversation): Omit<ApiCall, 'name'>;
  /** The turn after one event; an error in the stream is thrown. */
  grown(turn: Turn, event: Event): Turn;
}

/** As calls are named. */
export const protocolNames = ['chat', 'responses', 'messages', 'gemini'] as const;
export type ProtocolName = (typeof protocolNames)[number];

/** What events of the four have; a member of another type is as good as absent. */
interface Event {
  readonly type?: string;
  readonly error?: { readonly message?: string } | null;
  readonly message?: string | { readonly usage?: MessagesUsage };
  readonly delta?: string | { readonly text?: string; readonly thinking?: string; readonly partial_json?: string };
  readonly item?: {
    readonly type?: string;
    readonly name?: string;
    readonly arguments?: string;
    readonly output?: string | null;
    readonly error?: unknown;
  };
  readonly content_block?: {
    readonly type?: string;
    readonly id?: string;
    readonly tool_use_id?: string;
    readonly name?: string;
    readonly is_error?: boolean;
    readonly content?: readonly { readonly text?: string }[];
  };
  readonly response?: {
    readonly usage?: { readonly input_tokens?: number; readonly output_tokens?: number } | null;
    readonly error?: { readonly message?: string } | null;
  };
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string;
      readonly reasoning_content?: string;
      readonly executed_tools?: readonly ExecutedTool[];
    };
  }[];
  readonly usage?: (MessagesUsage & { readonly prompt_tokens?: number; readonly completion_tokens?: number }) | null;
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly GeminiPart[] };
  }[];
  readonly usageMetadata?: {
    readonly promptTokenCount?: number;
    readonly candidatesTokenCount?: number;
    readonly thoughtsTokenCount?: number;
  };
}
interface GeminiPart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly toolCall?: {
    readonly id?: string;
    readonly args?: { readonly name?: string; readonly arguments?: unknown };
  };
  readonly toolResponse?: {
    readonly id?: string;
    readonly response?: { readonly result?: string; readonly error?: string };
  };
}
interface ExecutedTool {
  readonly name: string;
  readonly arguments: string;
  readonly output: string;
  readonly is_error?: boolean;
}
interface MessagesUsage {
  readonly input_tokens?: number;
  readonly cache_read_input_tokens?: number;
  readonly cache_creation_input_tokens?: number;
  readonly output_tokens?: number;
}

/** `data:image/png;base64,AAAA` in its parts. */
function partsOf(image: string): { readonly type: string; readonly data: string } {
  const [head = '', data = ''] = image.split(',', 2);
  return { type: head.slice('data:'.length).replace(';base64', ''), data };
}

/** As responses and chat name them; no call waits for an approval. */
const serverTools = (names: readonly string[]) =>
  names.length === 0
    ? {}
    : {
        tools: names.map((name) => ({
          ...{ type: 'mcp', server_label: name, server_url: `gateway://${name}`, require_approval: 'never' },
        })),
      };
const stepped = (turn: Turn, ...steps: readonly Step[]): Turn => ({ ...turn, steps: [...turn.steps, ...steps] });

const given = (name: string, value: number | undefined) => (value === undefined ? {} : { [name]: value });
const more = (turn: Turn, text = '', reasoning = ''): Turn => ({
  ...turn,
  text: turn.text + text,
  reasoning: turn.reasoning + reasoning,
});
const counted = (turn: Turn, tokensIn: number | undefined, tokensOut: number | undefined): Turn => ({
  ...turn,
  tokensIn: tokensIn ?? turn.tokensIn,
  tokensOut: tokensOut ?? turn.tokensOut,
});

const chat: TalkProtocol = {
  call: ({ model, system, messages, tools, parameters: { temperature, maxTokens } }) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      messages: [
        ...(system === '' ? [] : [{ role: 'system', content: system }]),
        ...messages.map(({ role, content, images = [] }) => ({
          role,
          content:
            images.length === 0
              ? content
              : [...images.map((url) => ({ type: 'image_url', image_url: { url } })), { type: 'text', text: content }],
        })),
      ],
      ...given('temperature', temperature),
      ...given('max_tokens', maxTokens),
      ...serverTools(tools),
      stream: true,
      stream_options: { include_usage: true },
    },
  }),
  grown(turn, { choices, usage }) {
    const delta = choices?.[0]?.delta;
    const made = (delta?.executed_tools ?? []).map(({ name, arguments: input, output, is_error: failed = false }) => ({
      ...{ name, input, output, failed },
    }));
    const grown = more(stepped(turn, ...made), delta?.content ?? '', delta?.reasoning_content ?? '');
    return counted(grown, usage?.prompt_tokens, usage?.completion_tokens);
  },
};

const responses: TalkProtocol = {
  call: ({ model, system, messages, tools, parameters: { temperature, maxTokens } }) => ({
    path: '/v1/responses',
    body: {
      model,
      ...(system === '' ? {} : { instructions: system }),
      input: messages.map(({ role, content, images = [] }) => ({
        role,
        content:
          role === 'assistant'
            ? [{ type: 'output_text', text: content }]
            : [
                ...images.map((image_url) => ({ type: 'input_image', image_url })),
                { type: 'input_text', text: content },
              ],
      })),
      ...given('temperature', temperature),
      ...given('max_output_tokens', maxTokens),
      ...serverTools(tools),
      store: false,
      stream: true,
    },
  }),
  grown(turn, { type = '', delta, response, message, item }) {
    if (type === 'response.failed') throw new TalkError(response?.error?.message ?? '');
    if (type === 'error') throw new TalkError(typeof message === 'string' ? message : '');
    if (type === 'response.output_item.done' && item?.type === 'mcp_call') {
      const { name = '', arguments: input = '', output, error } = item;
      const failed = error !== undefined && error !== null;
      return stepped(turn, { name, input, output: output ?? (failed ? JSON.stringify(error) : ''), failed });
    }
    const text = typeof delta === 'string' ? delta : '';
    if (type === 'response.output_text.delta') return more(turn, text);
    if (/^response\.reasoning_(summary_)?text\.delta$/.test(type)) return more(turn, '', text);
    return counted(turn, response?.usage?.input_tokens, response?.usage?.output_tokens);
  },
};

/** The protocol wants a bound on each answer. */
const usualMostTokens = 4096;

const messages: TalkProtocol = {
  call: ({ model, system, messages: said, tools, parameters: { temperature, maxTokens } }) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: {
      model,
      max_tokens: maxTokens ?? usualMostTokens,
      ...(system === '' ? {} : { system }),
      messages: said.map(({ role, content, images = [] }) => ({
        role,
        content: [
          ...images.map((image) => {
            const { type, data } = partsOf(image);
            return { type: 'image', source: { type: 'base64', media_type: type, data } };
          }),
          { type: 'text', text: content },
        ],
      })),
      ...given('temperature', temperature),
      ...(tools.length === 0
        ? {}
        : { mcp_servers: tools.map((name) => ({ type: 'url', url: `gateway://${name}`, name })) }),
      stream: true,
    },
  }),
  grown(turn, { delta, usage, message, content_block: block }) {
    const part = typeof delta === 'object' ? delta : {};
    const grown = more(withCalls(turn, block, part.partial_json), part.text ?? '', part.thinking ?? '');
    const begun = typeof message === 'object' ? message.usage : undefined;
    return counted(grown, begun === undefined ? undefined : inputOf(begun), usage?.output_tokens);
  },
};

/** The arguments of a call come in pieces behind its block, its result as a block of its own. */
function withCalls(turn: Turn, block: Event['content_block'], piece: string | undefined): Turn {
  if (block !== undefined) {
    const { type, id = '', tool_use_id: of = '', name = '', is_error: failed = false, content = [] } = block;
    if (type === 'mcp_tool_use') return { ...turn, calling: id, called: { ...turn.called, [id]: { name, input: '' } } };
    const call = turn.called[of];
    const output = content.map(({ text = '' }) => text).join('\n');
    if (type === 'mcp_tool_result' && call !== undefined) return stepped(turn, { ...call, output, failed });
    return { ...turn, calling: undefined };
  }
  const call = turn.called[turn.calling ?? ''];
  if (piece === undefined || call === undefined) return turn;
  return { ...turn, called: { ...turn.called, [turn.calling!]: { ...call, input: call.input + piece } } };
}

const inputOf = (usage: MessagesUsage): number =>
  (usage.input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);

function withStep(turn: Turn, { toolCall, toolResponse }: GeminiPart): Turn {
  if (toolCall !== undefined) {
    const { id = '', args: { name = '', arguments: input = {} } = {} } = toolCall;
    return { ...turn, called: { ...turn.called, [id]: { name, input: JSON.stringify(input) } } };
  }
  const call = turn.called[toolResponse?.id ?? ''];
  if (call === undefined) return turn;
  const { result = '', error } = toolResponse?.response ?? {};
  return stepped(turn, { ...call, output: error ?? result, failed: error !== undefined });
}

const gemini: TalkProtocol = {
  call: ({ model, system, messages: said, tools, parameters: { temperature, maxTokens } }) => ({
    path: `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
    body: {
      ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
      contents: said.map(({ role, content, images = [] }) => ({
        role: role === 'assistant' ? 'model' : 'user',
        parts: [
          ...images.map((image) => {
            const { type, data } = partsOf(image);
            return { inlineData: { mimeType: type, data } };
          }),
          { text: content },
        ],
      })),
      generationConfig: { ...given('temperature', temperature), ...given('maxOutputTokens', maxTokens) },
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map((name) => ({
              mcpServers: [{ name, streamableHttpTransport: { url: `gateway://${name}` } }],
            })),
            toolConfig: { includeServerSideToolInvocations: true },
          }),
    },
  }),
  grown(turn, { candidates, usageMetadata }) {
    const parts = candidates?.[0]?.content?.parts ?? [];
    const textOf = (thought: boolean) =>
      parts
        .filter((part) => (part.thought ?? false) === thought)
        .map(({ text = '' }) => text)
        .join('');
    const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount = 0 } = usageMetadata ?? {};
    const out = candidatesTokenCount === undefined ? undefined : candidatesTokenCount + thoughtsTokenCount;
    return counted(more(parts.reduce(withStep, turn), textOf(false), textOf(true)), promptTokenCount, out);
  },
};

const protocols: Readonly<Record<ProtocolName, TalkProtocol>> = { chat, responses, messages, gemini };

export const callOf = (protocol: ProtocolName, conversation: Conversation): ApiCall => ({
  name: protocol,
  ...protocols[protocol].call(conversation),
});

/** The turn after the data of one event. */
export function grown(protocol: ProtocolName, turn: Turn, data: string): Turn {
  const event = JSON.parse(data) as Event;
  if (event.error !== undefined && event.error !== null) throw new TalkError(event.error.message ?? '');
  return protocols[protocol].grown(turn, event);
}
