/** A prompt that goes through two protocols is the same prompt, but for what the losses tell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../core/contract/errors.ts';
import type { EncodedRequest } from '../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../plugins/common/canonical/dropped-parameters.ts';
import type { Part, Prompt, Turn } from '../../plugins/common/canonical/prompt.ts';
import type { Protocol } from '../../plugins/common/wire/protocols.ts';
import { protocols } from '../../plugins/protocol-convert/protocols/index.ts';
import { fc } from '../helpers/properties.ts';
import { targetFor } from '../plugins/protocol-convert/harness.ts';
import { prompts } from './prompts.ts';

/** Settings that may change on their way without a loss: what stands for them is tested with the codecs. */
const settings = [
  ...([
    'maxOutputTokens',
    'temperature',
    'topP',
    'topK',
    'stop',
    'seed',
    'frequencyPenalty',
    'presencePenalty',
  ] as const),
  ...(['verbosity', 'parallelTools', 'toolChoice', 'choices', 'user', 'cacheKey', 'output', 'reasoning'] as const),
  ...(['logprobs', 'metadata', 'serviceTier'] as const),
];
type Named = (typeof settings)[number];

interface TranslatedRequest extends EncodedRequest {
  readonly losses: DroppedParameters;
}

/** The request in this protocol; undefined when a promise cannot be kept. `asker`: whose field names losses use. */
function encoded(prompt: Prompt, to: Protocol, client: Protocol): TranslatedRequest | GatewayError {
  const losses = new DroppedParameters(client.codec.spelling);
  const target = targetFor(to.name, 'model');
  try {
    const encoded = to.codec.encodeRequest(prompt, {
      target,
      traits: {},
      maker: 'maker',
      dropped: losses,
      stream: false,
      maxOutputTokens: undefined,
    });
    return { ...encoded, losses };
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'unsupported_by_model' && error.field !== undefined)
      return error;
    throw error;
  }
}

/** The request as that protocol's own endpoint reads it; generate-content tells the model in its path. */
function reread({ body }: EncodedRequest, by: Protocol): { prompt: Prompt; losses: DroppedParameters } {
  const losses = new DroppedParameters(by.codec.spelling);
  const prompt = by.codec.decodeRequest(JSON.parse(JSON.stringify(body)), {
    dropped: losses,
    open: (text) => ({ maker: 'maker', value: text }),
  });
  return { prompt, losses };
}

for (const client of protocols) {
  for (const upstream of protocols) {
    test(`a prompt by ${client.name} to ${upstream.name} loses only what the losses tell`, () => {
      let arrivedCount = 0;
      fc.assert(
        fc.property(prompts, (made) => {
          const first = encoded(made, client, client);
          if (first instanceof GatewayError) return;
          const { prompt: requested } = reread(first, client);
          const second = encoded(requested, upstream, client);
          if (second instanceof GatewayError) {
            assertPromise(second, requested, client);
            return;
          }
          const { prompt: arrived, losses } = reread(second, upstream);
          assert.deepEqual(losses.dropped, [], 'what the gateway words it also reads');
          assertSame(requested, arrived, second);
          if (upstream.name !== 'chat') assertOpaqueStates(requested, second);
          arrivedCount++;
        }),
        { numRuns: 200 },
      );
      assert.ok(arrivedCount > 100, `${arrivedCount} of 200 arrived`);
    });
  }
}

/** A refusal names what was asked for. */
function assertPromise(error: GatewayError, requested: Prompt, client: Protocol): void {
  const { spelling } = client.codec;
  const names = settings.filter((name) => requested[name] !== undefined).map((name) => spelling[name]);
  assert.ok(names.includes(error.field), `${error.field} was asked for: ${error.message}`);
}

function assertSame(
  requested: Prompt,
  arrived: Prompt,
  { body, losses, responseMapping: way }: TranslatedRequest,
): void {
  const added = assertSystem(requested, arrived);
  assert.deepEqual(spokenIn(arrived.turns), spokenIn(requested.turns), 'the turns');
  assert.deepEqual(arrived.tools.map(toolOf), requested.tools.map(toolOf), 'the tools');
  const emulated: Partial<Record<Named, boolean>> = {
    stop: way.stop !== undefined,
    output: way.answerTool !== undefined,
    // Where a tool cannot be forced, the model is asked to call it.
    toolChoice: /^Call (?:the tool|one of the tools) /.test(added),
    // Nothing is called, so nothing is called in parallel.
    parallelTools: requested.toolChoice?.mode === 'none',
    // Where caches have no keys, marks say what to keep; a prompt that may never come again has none.
    cacheKey: JSON.stringify(body).includes('"cache_control"') || isFirst(requested, body),
    // Messages upstreams take the tier that the account has, or the standard one.
    serviceTier: 'max_tokens' in body,
  };
  for (const name of settings) {
    if (requested[name] === undefined || emulated[name]) continue;
    if (losses.dropped.includes(losses.nameOf(name))) continue;
    assert.deepEqual(plain(name, arrived), plain(name, requested), name);
  }
}

/** The first prompt of a conversation without tools, in a protocol that marks what to keep. */
function isFirst({ tools, turns }: Prompt, body: TranslatedRequest['body']): boolean {
  return 'max_tokens' in body && tools.length === 0 && turns.every(({ role }) => role !== 'assistant');
}

/** What the gateway has added to the system text instead of a setting; its own words and nothing else. */
function assertSystem(requested: Prompt, arrived: Prompt): string {
  const before = systemOf(requested);
  const after = systemOf(arrived);
  assert.ok(after.startsWith(before), `the system text: ${after}`);
  const added = after.slice(before.length).trimStart();
  if (added !== '') assert.match(added, /^Call (?:the tool|one of the tools) .*$/, 'the system text');
  return added;
}

/** Marks of strictness and names of schemas are no loss: there is one schema, and it is followed. */
function plain(name: Named, prompt: Prompt): unknown {
  if (name === 'output') return prompt.output?.form === 'schema' ? prompt.output.schema : prompt.output;
  if (name === 'reasoning') return prompt.reasoning?.effort;
  return prompt[name];
}

function systemOf({ turns }: Prompt): string {
  const parts = turns.filter(({ role }) => role === 'system').flatMap((turn) => turn.parts);
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('\n\n');
}

function toolOf(tool: Prompt['tools'][number]): unknown {
  const { kind, name } = tool;
  return kind === 'function' ? { kind, name, description: tool.description, schema: tool.schema } : { kind, name };
}

/** Who said what, whatever turns and parts it stands in; results by the place of their call. */
function spokenIn(turns: readonly Turn[]): unknown[] {
  const calls = new Map<string, number>();
  const spoken: { role: string; text?: string }[] = [];
  for (const { role, parts } of turns) {
    if (role === 'system') continue;
    for (const part of parts) {
      if (part.kind === 'reasoning') continue;
      const one = { role, ...said(part, calls) };
      const last = spoken.at(-1);
      if (part.kind === 'text' && last?.role === role && last.text !== undefined && !('resultOf' in last))
        last.text = `${last.text}\n\n${part.text}`;
      else spoken.push(one);
    }
  }
  return spoken;
}

/** What its maker wants back goes out as it came, in its order; one protocol signs calls, another reasoning. */
function assertOpaqueStates({ turns }: Prompt, { body }: TranslatedRequest): void {
  const parts = turns.flatMap((turn) => turn.parts);
  const values = parts.flatMap((part) => ('opaqueState' in part ? [JSON.stringify(part.opaqueState?.value)] : []));
  const text = JSON.stringify(body);
  let at = 0;
  for (const value of values) {
    at = text.indexOf(value, at) + value.length;
    assert.ok(at >= value.length, 'the opaque states');
  }
}

function said(part: Part, calls: Map<string, number>): object {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'tool-call':
      calls.set(part.id, calls.size);
      return { call: part.name, input: JSON.parse(part.input) };
    case 'tool-result': {
      const texts = part.parts.map((one) => (one.kind === 'text' ? one.text : one.kind)).join('\n');
      return { resultOf: calls.get(part.callId), text: texts.replace(/^Error: /, '') };
    }
    case 'image':
    case 'document':
      return { kind: part.kind, source: part.source };
    default:
      return { kind: part.kind };
  }
}
