/** Messages as the loopback vendor reads and speaks them. */
import { type AgentRequest, type Move, must, pieces, reported, signature, thought } from './agent.ts';
import type { Json, Speech } from './speech.ts';

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'vendors-own-model' };
const usage = {
  input_tokens: reported.input - reported.cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: reported.cached,
  output_tokens: reported.output,
  output_tokens_details: { thinking_tokens: reported.reasoning },
};

export const messages: Speech = {
  base: '',
  isRequest: (path) => path === '/v1/messages',
  read,
  stream(move) {
    const frames: string[] = [];
    const report = (type: string, more: Json = {}) =>
      void frames.push(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    const start = {
      ...head,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 1 },
    };
    report('message_start', { message: start });
    report('ping');
    for (const [index, { begin, deltas }] of blocksOf(move).entries()) {
      report('content_block_start', { index, content_block: begin });
      for (const delta of deltas) report('content_block_delta', { index, delta });
      report('content_block_stop', { index });
    }
    report('message_delta', { delta: { stop_reason: reasonOf(move), stop_sequence: null }, usage });
    report('message_stop');
    return frames.join('');
  },
  whole(move) {
    const said =
      move.kind === 'text'
        ? { type: 'text', text: move.text }
        : { type: 'tool_use', id: 'toolu_1', name: move.tool.name, input: move.input };
    const content = [{ type: 'thinking', thinking: thought, signature }, said];
    return { ...head, content, stop_reason: reasonOf(move), stop_sequence: null, usage };
  },
  countTokens: (path) => (path === '/v1/messages/count_tokens' ? { input_tokens: reported.input } : undefined),
};

const reasonOf = (move: Move) => (move.kind === 'call' ? 'tool_use' : 'end_turn');

function blocksOf(move: Move): { begin: Json; deltas: Json[] }[] {
  const thinking = {
    begin: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...pieces(thought).map((text) => ({ type: 'thinking_delta', thinking: text })),
      { type: 'signature_delta', signature },
    ],
  };
  if (move.kind === 'text') {
    const deltas = pieces(move.text).map((text) => ({ type: 'text_delta', text }));
    return [thinking, { begin: { type: 'text', text: '' }, deltas }];
  }
  const begin = { type: 'tool_use', id: 'toolu_1', name: move.tool.name, input: {} };
  const parts = pieces(JSON.stringify(move.input));
  return [thinking, { begin, deltas: parts.map((text) => ({ type: 'input_json_delta', partial_json: text })) }];
}

function read(body: Json): AgentRequest {
  must(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens: Field required');
  must(
    Array.isArray(body.messages) && body.messages[0]?.role === 'user',
    'messages: first message must be of the user',
  );
  let result: string | undefined;
  let open: string[] = [];
  for (const { role, content } of body.messages) {
    must(/^(user|assistant|system)$/.test(role), `messages: Input should be 'user' or 'assistant'`);
    const blocks: Json[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    must(blocks.length > 0, 'messages: a turn is empty');
    for (const block of blocks) checkBlock(block);
    if (role === 'user') {
      const reply = blocks.filter(({ type }) => type === 'tool_result');
      const ids = reply.map((block) => block.tool_use_id);
      must(
        open.every((id) => ids.includes(id)),
        `tool_use ids were found without tool_result blocks: ${open}`,
      );
      must(
        ids.every((id) => open.includes(id)),
        `unexpected tool_use_id in tool_result blocks: ${ids}`,
      );
      open = [];
      if (reply.length > 0) result = textOf(reply.at(-1).content);
    } else if (role === 'assistant') open = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id);
  }
  const names = (body.tools ?? []).map(({ name }: Json) => name);
  const tools = names.map((name: string) => ({ name }));
  must(new Set(names).size === names.length, 'tools: Tool names must be unique.');
  for (const tool of body.tools ?? [])
    must(tool.type !== undefined || tool.input_schema?.type === 'object', `tools: ${tool.name} has no input_schema`);
  return { model: body.model, stream: body.stream === true, tools, result, schema: body.output_config?.format?.schema };
}

function checkBlock(block: Json): void {
  if (block.type === 'text') must(block.text !== '', 'messages: text content blocks must be non-empty');
  if (block.type === 'thinking')
    must(block.signature === signature, 'messages: Invalid `signature` in `thinking` block');
  if (block.type === 'tool_use') {
    must(/^[a-zA-Z0-9_-]+$/.test(block.id), `messages: the id ${block.id} is not allowed`);
    must(typeof block.input === 'object' && block.input !== null, 'messages: tool_use.input should be an object');
  }
}

function textOf(content: Json): string {
  return typeof content === 'string' ? content : (content ?? []).map((part: Json) => part.text ?? '').join('');
}
