/** Responses as the loopback vendor reads and speaks them. */
import { type AgentRequest, type Move, must, type Offer, pieces, reported, signature, thought } from './agent.ts';
import { checkToolChoice } from './speak-chat.ts';
import type { Json, Speech } from './speech.ts';

const head = { id: 'resp_1', object: 'response', created_at: 1_790_000_000, model: 'vendors-own-model' };
const usage = {
  input_tokens: reported.input,
  input_tokens_details: { cached_tokens: reported.cached },
  output_tokens: reported.output,
  output_tokens_details: { reasoning_tokens: reported.reasoning },
  total_tokens: reported.input + reported.output,
};

export const responses: Speech = {
  base: '/v1',
  isRequest: (path) => path === '/v1/responses',
  read,
  stream(move) {
    const writer = new EventWriter();
    writer.report('response.created', { response: { ...head, status: 'in_progress', output: [] } });
    writer.reasoning();
    if (move.kind === 'text') writer.message(move.text);
    else writer.call(move);
    writer.report('response.completed', { response: { ...head, status: 'completed', output: itemsOf(move), usage } });
    return writer.frames.join('');
  },
  whole: (move) => ({ ...head, status: 'completed', output: itemsOf(move), usage }),
  countTokens: (path) =>
    path === '/v1/responses/input_tokens'
      ? { object: 'response.input_tokens', input_tokens: reported.input }
      : undefined,
};

type Call = Extract<Move, { kind: 'call' }>;
const reasoningItem = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [{ type: 'summary_text', text: thought }],
  encrypted_content: signature,
};
const messageItem = (text: string) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const callItem = ({ tool: { name, namespace }, input }: Call) => ({
  id: 'fc_1',
  call_id: 'call_1',
  name,
  ...(namespace === undefined ? {} : { namespace }),
  status: 'completed',
  ...(typeof input === 'string'
    ? { type: 'custom_tool_call', input }
    : { type: 'function_call', arguments: JSON.stringify(input) }),
});

function itemsOf(move: Move): Json[] {
  return [reasoningItem, move.kind === 'text' ? messageItem(move.text) : callItem(move)];
}

/** Words a stream, numbered and named. */
class EventWriter {
  readonly frames: string[] = [];

  report(type: string, more: Json): void {
    const data = JSON.stringify({ type, sequence_number: this.frames.length, ...more });
    this.frames.push(`event: ${type}\ndata: ${data}\n\n`);
  }

  reasoning(): void {
    const place = { item_id: 'rs_1', output_index: 0, summary_index: 0 };
    this.report('response.output_item.added', { output_index: 0, item: { ...reasoningItem, summary: [] } });
    this.report('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } });
    for (const delta of pieces(thought)) this.report('response.reasoning_summary_text.delta', { ...place, delta });
    this.report('response.reasoning_summary_text.done', { ...place, text: thought });
    this.report('response.reasoning_summary_part.done', { ...place, part: reasoningItem.summary[0] });
    this.report('response.output_item.done', { output_index: 0, item: reasoningItem });
  }

  message(text: string): void {
    const item = messageItem(text);
    const place = { item_id: item.id, output_index: 1, content_index: 0 };
    this.report('response.output_item.added', {
      output_index: 1,
      item: { ...item, status: 'in_progress', content: [] },
    });
    this.report('response.content_part.added', { ...place, part: { ...item.content[0], text: '' } });
    for (const delta of pieces(text)) this.report('response.output_text.delta', { ...place, delta, logprobs: [] });
    this.report('response.output_text.done', { ...place, text, logprobs: [] });
    this.report('response.content_part.done', { ...place, part: item.content[0] });
    this.report('response.output_item.done', { output_index: 1, item });
  }

  call(move: Call): void {
    const item = callItem(move);
    const place = { item_id: item.id, output_index: 1 };
    const [growing, text, event] =
      typeof move.input === 'string'
        ? ['input', move.input, 'response.custom_tool_call_input']
        : ['arguments', JSON.stringify(move.input), 'response.function_call_arguments'];
    const begun = { ...item, status: 'in_progress', [growing]: '' };
    this.report('response.output_item.added', { output_index: 1, item: begun });
    for (const delta of pieces(text)) this.report(`${event}.delta`, { ...place, delta });
    this.report(`${event}.done`, { ...place, [growing]: text });
    this.report('response.output_item.done', { output_index: 1, item });
  }
}

function read(body: Json): AgentRequest {
  const items: Json[] = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input;
  must(Array.isArray(items) && items.length > 0, 'input is missing');
  const calls = new Set<string>();
  const moreTools = items.flatMap((item) => (item.type === 'additional_tools' ? item.tools : []));
  const tools = offersIn([...(body.tools ?? []), ...moreTools]);
  let result: string | undefined;
  for (const item of items) {
    if (item.type === 'reasoning')
      must(item.encrypted_content === signature, 'reasoning that is not ours could not be verified');
    else if (/call$/.test(item.type ?? '')) calls.add(item.call_id);
    else if (/call_output$/.test(item.type ?? '')) {
      must(calls.delete(item.call_id), `No tool call found for function call output with call_id ${item.call_id}.`);
      result = typeof item.output === 'string' ? item.output : item.output.map(({ text }: Json) => text ?? '').join('');
    } else if (item.type === 'message' || item.type === undefined) checkContent(item);
  }
  must(calls.size === 0, `No tool output found for function call ${[...calls][0]}.`);
  for (const { name } of tools) must(/^[\w-]{1,64}$/.test(name), `the tool's name ${name} is not allowed`);
  const names = new Set(tools.map(({ namespace, name }) => `${namespace}.${name}`));
  must(names.size === tools.length, 'two tools have one name');
  checkToolChoice(body.tool_choice);
  return { model: body.model, stream: body.stream === true, tools, result, schema: body.text?.format?.schema };
}

/** The tools that the client runs, those in namespaces too. */
function offersIn(tools: readonly Json[], namespace?: string): Offer[] {
  return tools.flatMap((tool): Offer[] => {
    if (tool.type === 'namespace') return offersIn(tool.tools, tool.name);
    if (tool.type !== 'function' && tool.type !== 'custom') return [];
    return [{ name: tool.name, namespace, custom: tool.type === 'custom' }];
  });
}

function checkContent({ role, content }: Json): void {
  must(/^(system|developer|user|assistant)$/.test(role), `the role ${role} is unknown`);
  if (typeof content === 'string') return;
  const allowed = role === 'assistant' ? /^(output_text|refusal)$/ : /^input_(text|image|file)$/;
  for (const { type } of content) must(allowed.test(type), `a message of ${role} holds ${type}`);
}
