/** Llama and Mistral as InvokeModel takes and answers them: one text with marks, or messages; streams are counted by their metrics. */
import assert from 'node:assert/strict';
import type { Play } from '../../matrix/scenario.ts';
import { type Json, list, object, onlyMembers, text, toolName } from '../../matrix/vendors/pieces.ts';

export interface Format {
  read(json: Json): void;
  whole(play: Play): string;
  /** Chunks as the model writes them; the vendor adds the metrics to the last one. */
  chunks(play: Play): string[];
}

const ends: Readonly<Record<string, string>> = { stop: 'stop', length: 'length', 'tool-calls': 'tool_calls' };

/** Pieces of the text, never inside a character. */
function pieces(said: string): string[] {
  return [...said].map((_, at, all) => all.slice(at, at + 3).join('')).filter((_, at) => at % 3 === 0);
}

function numbers(json: Json, names: readonly string[]): void {
  for (const name of names) if (json[name] !== undefined) assert.equal(typeof json[name], 'number', name);
}

/** The names of turns, as the model's template has them; the last one is the answer's. */
function llamaOf(begin: string, endOfName: string, end: string): Format {
  const turn = new RegExp(
    `${[begin, '(system|user|assistant)', endOfName].join('').replaceAll('|>', '\\|>').replaceAll('<|', '<\\|')}\n\n`,
  );
  return {
    read(json) {
      onlyMembers(json, ['prompt', 'max_gen_len', 'temperature', 'top_p'], 'the body');
      numbers(json, ['max_gen_len', 'temperature', 'top_p']);
      const prompt = text(json['prompt'], 'prompt');
      assert.ok(prompt.startsWith('<|begin_of_text|>'));
      const [empty, ...turns] = prompt.slice('<|begin_of_text|>'.length).split(turn);
      assert.equal(empty, '');
      const names = turns.filter((_, at) => at % 2 === 0);
      const texts = turns.filter((_, at) => at % 2 === 1);
      assert.equal(names.at(-1), 'assistant');
      assert.equal(texts.at(-1), '');
      for (const said of texts.slice(0, -1)) {
        assert.ok(said.endsWith(end), said);
        assert.doesNotMatch(said.slice(0, -end.length), /<\|\w+\|>/);
      }
      alternating(names.filter((name) => name !== 'system').slice(0, -1));
    },
    whole: (play) =>
      JSON.stringify({
        generation: play.text,
        prompt_token_count: play.usage.input,
        generation_token_count: play.usage.output,
        stop_reason: ends[play.meaning],
      }),
    chunks: (play) => {
      const texts = [...pieces(play.text ?? ''), ''];
      return texts.map((generation, at) =>
        JSON.stringify({
          generation,
          prompt_token_count: at === 0 ? play.usage.input : null,
          generation_token_count: at === texts.length - 1 ? play.usage.output : Math.min(at + 1, play.usage.output),
          stop_reason: at === texts.length - 1 ? ends[play.meaning] : null,
        }),
      );
    },
  };
}

export const llama = llamaOf('<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>');
export const llama4 = llamaOf('<|header_start|>', '<|header_end|>', '<|eot|>');

function alternating(roles: readonly string[]): void {
  for (const [at, role] of roles.entries()) assert.equal(role, at % 2 === 0 ? 'user' : 'assistant', roles.join());
  assert.equal(roles.at(-1), 'user');
}

export const mistralText: Format = {
  read(json) {
    onlyMembers(json, ['prompt', 'max_tokens', 'temperature', 'top_p', 'top_k', 'stop'], 'the body');
    numbers(json, ['max_tokens', 'temperature', 'top_p', 'top_k']);
    assert.ok(json['stop'] === undefined || list(json['stop'], 'stop').length <= 10);
    const prompt = text(json['prompt'], 'prompt');
    assert.match(prompt, /^<s>\[INST\] [\s\S]* \[\/INST\]$/);
    for (const step of prompt.slice('<s>'.length).split('</s>'))
      assert.match(step, /^\[INST\] ((?!\[\/?INST\]|<\/?s>)[\s\S])* \[\/INST\]((?!\[\/?INST\]|<\/?s>)[\s\S])*$/);
  },
  whole: (play) => JSON.stringify({ outputs: [{ text: play.text, stop_reason: ends[play.meaning] }] }),
  chunks: (play) =>
    [...pieces(play.text ?? ''), ''].map((said, at, all) =>
      JSON.stringify({ outputs: [{ text: said, stop_reason: at === all.length - 1 ? ends[play.meaning] : null }] }),
    ),
};

export const mistral: Format = {
  read(json) {
    onlyMembers(json, ['messages', 'tools', 'tool_choice', 'max_tokens', 'temperature', 'top_p'], 'the body');
    numbers(json, ['max_tokens', 'temperature', 'top_p']);
    if (json['tool_choice'] !== undefined) assert.match(String(json['tool_choice']), /^(auto|any|none)$/);
    for (const tool of json['tools'] === undefined ? [] : list(json['tools'], 'tools')) {
      const { type, function: own } = object(tool, 'tool');
      assert.equal(type, 'function');
      const { name, parameters, ...rest } = object(own, 'function');
      assert.match(text(name, 'name'), toolName);
      object(parameters, 'parameters');
      onlyMembers(rest, ['description'], 'a tool');
    }
    readMessages(list(json['messages'], 'messages').map((message) => object(message, 'message')));
  },
  whole: (play) => JSON.stringify({ choices: [choice(play, play.text ?? '', true)] }),
  chunks: (play) => [
    ...pieces(play.text ?? '').map((said) => JSON.stringify({ choices: [choice(play, said, false)] })),
    JSON.stringify({ choices: [choice(play, '', true)] }),
  ],
};

function choice(play: Play, content: string, isLast: boolean): object {
  const calls = (play.calls ?? []).map(({ id, name, input }) => ({
    id,
    function: { name, arguments: JSON.stringify(input) },
  }));
  const tool_calls = isLast && calls.length > 0 ? { tool_calls: calls } : {};
  return {
    index: 0,
    message: { role: 'assistant', content, ...tool_calls },
    stop_reason: isLast ? ends[play.meaning] : null,
  };
}

/** The order of roles that the vendor insists on. */
const mayFollow: Readonly<Record<string, readonly string[]>> = {
  '': ['system', 'user'],
  system: ['user'],
  user: ['assistant'],
  assistant: ['user'],
  calls: ['tool'],
  tool: ['tool', 'assistant'],
};

function readMessages(messages: readonly Json[]): void {
  let before = '';
  let open: string[] = [];
  for (const { role, content, tool_calls: calls, tool_call_id: callId, ...rest } of messages) {
    assert.deepEqual(rest, {});
    assert.ok(mayFollow[before]!.includes(String(role)), `${role} after ${before}`);
    if (role === 'tool') {
      assert.equal(callId, open.shift());
      text(content, 'content');
    } else if (role === 'user' && typeof content !== 'string')
      for (const part of list(content, 'content').map((one) => object(one, 'part')))
        if (part['type'] === 'text') text(part['text'], 'text');
        else assert.match(String(object(part['image_url'], 'image_url')['url']), /^data:image\/\w+;base64,[\w+/=]+$/);
    else text(content, 'content');
    if (calls !== undefined) {
      assert.equal(role, 'assistant');
      open = list(calls, 'tool_calls').map((call) => {
        const { id, function: own } = object(call, 'call');
        assert.match(text(id, 'id'), /^[a-zA-Z0-9]{9}$/);
        object(JSON.parse(text(object(own, 'function')['arguments'], 'arguments')), 'arguments');
        return String(id);
      });
    }
    before = calls === undefined ? String(role) : 'calls';
  }
  assert.ok(before === 'user' || before === 'tool', before);
  assert.deepEqual(open, []);
}
