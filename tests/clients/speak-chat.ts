/** Chat completions as the loopback vendor reads and speaks them. */
import { type AgentRequest, type Move, must, pieces, reported, thought } from './agent.ts';
import type { Json, Speech } from './speech.ts';

const head = { id: 'chatcmpl-1', created: 1_790_000_000, model: 'vendors-own-model' };
const usage = {
  prompt_tokens: reported.input,
  completion_tokens: reported.output,
  total_tokens: reported.input + reported.output,
  prompt_tokens_details: { cached_tokens: reported.cached },
  completion_tokens_details: { reasoning_tokens: reported.reasoning },
};

export const chat: Speech = {
  base: '/v1',
  isRequest: (path) => path === '/v1/chat/completions',
  read,
  stream(move) {
    const frame = (choices: Json[], more: Json = {}) =>
      `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
    const delta = (delta: Json, reason: string | null = null) => frame([{ index: 0, delta, finish_reason: reason }]);
    const frames = [delta({ role: 'assistant', content: '' })];
    for (const text of pieces(thought)) frames.push(delta({ reasoning_content: text }));
    if (move.kind === 'text') for (const content of pieces(move.text)) frames.push(delta({ content }));
    else frames.push(...callDeltas(move).map((call) => delta({ tool_calls: [call] })));
    frames.push(delta({}, move.kind === 'call' ? 'tool_calls' : 'stop'), frame([], { usage }), 'data: [DONE]\n\n');
    return frames.join('');
  },
  whole(move) {
    const message =
      move.kind === 'text'
        ? { role: 'assistant', content: move.text }
        : { role: 'assistant', content: null, tool_calls: [wholeCall(move)] };
    const choice = { index: 0, message, finish_reason: move.kind === 'call' ? 'tool_calls' : 'stop' };
    return { ...head, object: 'chat.completion', choices: [choice], usage };
  },
  countTokens: () => undefined,
};

type Call = Extract<Move, { kind: 'call' }>;
const wholeCall = ({ tool, input }: Call) => ({
  id: 'call_1',
  type: 'function',
  function: { name: tool.name, arguments: JSON.stringify(input) },
});

function callDeltas(move: Call): Json[] {
  const start = { index: 0, ...wholeCall(move), function: { name: move.tool.name, arguments: '' } };
  const more = pieces(JSON.stringify(move.input)).map((text) => ({ index: 0, function: { arguments: text } }));
  return [start, ...more];
}

function read(body: Json): AgentRequest {
  must(Array.isArray(body.messages) && body.messages.length > 0, 'messages are missing');
  let open: string[] = [];
  let result: string | undefined;
  for (const message of body.messages) {
    must(/^(system|developer|user|assistant|tool)$/.test(message.role), `the role ${message.role} is unknown`);
    if (message.role === 'tool') {
      must(open.includes(message.tool_call_id), `the result of ${message.tool_call_id} follows no call`);
      open = open.filter((id) => id !== message.tool_call_id);
      result = textOf(message.content);
      continue;
    }
    must(open.length === 0, `no result follows the call ${open[0]}`);
    must(message.content != null || message.tool_calls?.length > 0, `a message of ${message.role} has no content`);
    for (const call of message.tool_calls ?? []) {
      JSON.parse(call.function.arguments);
      open.push(call.id);
    }
  }
  const tools = (body.tools ?? []).map((tool: Json): string => tool.function.name);
  for (const name of tools) must(/^[\w-]{1,64}$/.test(name), `the tool's name ${name} is not allowed`);
  must(new Set(tools).size === tools.length, 'two tools have one name');
  checkToolChoice(body.tool_choice);
  if (body.stream) must(body.stream_options?.include_usage === true, 'the client did not ask for usage');
  return {
    model: body.model,
    stream: body.stream === true,
    tools: tools.map((name: string) => ({ name })),
    result,
    schema: body.response_format?.json_schema?.schema,
  };
}

/** The words that the vendors of chat and of responses know; an object names a tool. */
export function checkToolChoice(choice: Json): void {
  const isKnown = choice === undefined || typeof choice === 'object' || /^(auto|none|required)$/.test(choice);
  must(isKnown, `Invalid value for tool_choice: ${choice}`);
}

function textOf(content: Json): string {
  return typeof content === 'string' ? content : content.map((part: Json) => part.text ?? '').join('');
}
