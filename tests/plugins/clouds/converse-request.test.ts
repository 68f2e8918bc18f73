/** What becomes of a prompt in a request to Converse; the region of a signature. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExtensionPoint } from '../../../core/contract/contract.ts';
import { secret } from '../../../core/contract/secret.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import aws from '../../../plugins/aws/index.ts';
import { encodeRequest } from '../../../plugins/bedrock/encode.ts';
import { eventStream } from '../../../plugins/bedrock/event-stream.ts';
import { DroppedParameters } from '../../../plugins/common/canonical/dropped-parameters.ts';
import type { Part, Prompt, Tool } from '../../../plugins/common/canonical/prompt.ts';
import type { Traits } from '../../../plugins/common/domain/traits.ts';
import type { Target } from '../../../plugins/common/domain/upstreams.ts';
import type { ComputedScheme } from '../../../plugins/common/wire/credentials.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const says = (text: string): Prompt['turns'][number] => ({ role: 'user', parts: [{ kind: 'text', text }] });
const tool = (name: string): Tool => ({ kind: 'function', name, schema: { type: 'object', properties: {} } });
const step: Prompt['turns'] = [
  says('Hi'),
  { role: 'assistant', parts: [{ kind: 'tool-call', id: 'call:1', name: 'one', input: '{"a":1}' }] },
  { role: 'user', parts: [{ kind: 'tool-result', callId: 'call:1', parts: [], isError: true }] },
];

function encode(prompt: Partial<Prompt>, traits: Traits = {}, maxOutputTokens?: number) {
  const dropped = new DroppedParameters({});
  const target = { provider: 'p', model: 'arn:aws:x/y', protocol: 'bedrock' } as unknown as Target;
  const context = { target, traits, maker: 'maker', dropped, stream: false, maxOutputTokens };
  const { body, path, responseMapping } = encodeRequest({ turns: [says('Hi')], tools: [], ...prompt }, context);
  return { body: body as Record<string, JsonObject>, path, responseMapping, dropped: dropped.dropped };
}

test('the model is one segment of the path', () => {
  assert.equal(encode({}).path, '/model/arn%3Aaws%3Ax%2Fy/converse');
});

test('a tool or any tool is forced; where reasoning is on the model is instructed instead', () => {
  const required = (names: string[], more: Partial<Prompt> = {}) =>
    encode({ tools: names.map(tool), toolChoice: { mode: 'required' }, ...more }, { reasoning: 'budget' }, 8_000);
  assert.deepEqual(required(['one']).body['toolConfig']!['toolChoice'], { tool: { name: 'one' } });
  assert.deepEqual(required(['one', 'two']).body['toolConfig']!['toolChoice'], { any: {} });
  const eased = required(['one'], { reasoning: { effort: 'high' } });
  assert.equal(eased.body['toolConfig']!['toolChoice'], undefined);
  assert.match(JSON.stringify(eased.body['system']), /Call one of the tools now/);
  assert.deepEqual(eased.dropped, ['toolChoice']);
});

test('calls of the history are declared, and forbidden where none may be made', () => {
  for (const prompt of [{}, { tools: [tool('one')], toolChoice: { mode: 'none' } as const }]) {
    const { body } = encode({ turns: step, ...prompt });
    assert.match(JSON.stringify(body['toolConfig']), /^\{"tools":\[\{"toolSpec":\{"name":"one"/);
    assert.match(JSON.stringify(body['system']), /Do not call any tool/);
    const [, call, result] = body['messages'] as unknown as { content: JsonObject[] }[];
    const id = (call!.content[0]!['toolUse'] as JsonObject)['toolUseId'];
    assert.match(String(id), /^toolu_\w{24}$/);
    assert.deepEqual(result!.content[0], {
      toolResult: { toolUseId: id, content: [{ text: '(no output)' }], status: 'error' },
    });
  }
  assert.equal(encode({ tools: [tool('one')], toolChoice: { mode: 'none' } }).body['toolConfig'], undefined);
});

test('reasoning is requested in the form of the traits, and otherwise left out', () => {
  const fields = (traits: Traits, bound?: number, turns = [says('Hi')]) => {
    const { body, dropped } = encode({ reasoning: { effort: 'high' }, turns }, traits, bound);
    return [body['additionalModelRequestFields'], dropped];
  };
  assert.deepEqual(fields({ reasoning: 'effort' }), [{ reasoning_effort: 'high' }, []]);
  const adaptive = { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } };
  assert.deepEqual(fields({ reasoning: 'adaptive' }), [adaptive, []]);
  assert.deepEqual(fields({ reasoning: 'budget' }, 10_000), [
    { thinking: { type: 'enabled', budget_tokens: 6_000 } },
    [],
  ]);
  assert.deepEqual(fields({ reasoning: 'budget' }, 1_000), [undefined, ['reasoning']], 'no room');
  assert.deepEqual(fields({}), [undefined, ['reasoning']]);
  assert.deepEqual(
    fields({ reasoning: 'budget' }, 10_000, [...step]),
    [undefined, ['reasoning']],
    'in the middle of a step',
  );
});

test('settings are converted within their bounds; others are named', () => {
  const { body, dropped, responseMapping } = encode(
    {
      maxOutputTokens: 900,
      temperature: 1.5,
      topP: 0.9,
      topK: 5,
      seed: 7,
      stop: ['###', '\n'],
      reasoning: { effort: 'none' },
    },
    {},
    500,
  );
  assert.deepEqual(body['inferenceConfig'], { maxTokens: 500, temperature: 1, topP: 0.9, stopSequences: ['###'] });
  assert.deepEqual(responseMapping.stop, ['\n']);
  assert.deepEqual([...dropped].sort(), ['seed', 'temperature', 'topK']);
  assert.throws(() => encode({ choices: 2 }), /one answer at a time/);
});

test('a schema is a setting for models that accept it, and an instruction for others', () => {
  const output = { form: 'schema', name: 'town', schema: { type: 'object' } } as const;
  const native = { jsonSchema: { name: 'town', schema: '{"type":"object"}' } };
  const reported = encode({ output }, { structured: 'native' }).body['outputConfig'];
  assert.deepEqual(reported, { textFormat: { type: 'json_schema', structure: native } });
  assert.match(JSON.stringify(encode({ output }).body['system']), /must follow this JSON schema/);
});

test('media are sent in their forms; unreadable ones are refused, and replaced in results', () => {
  const media = (kind: 'image' | 'document' | 'audio', mediaType: string): Part => ({
    kind,
    source: { form: 'bytes', mediaType, base64: 'AAAA' },
    name: 'Bericht für März.pdf',
  });
  const content = (part: Part) =>
    (
      encode({ turns: [{ role: 'user', parts: [part] }] }).body['messages'] as unknown as { content: JsonObject[] }[]
    )[0]!.content[0];
  assert.deepEqual(content(media('image', 'image/webp')), { image: { format: 'webp', source: { bytes: 'AAAA' } } });
  const document = { format: 'pdf', name: 'Bericht f-r M-rz', source: { bytes: 'AAAA' } };
  assert.deepEqual(content(media('document', 'application/pdf')), { document });
  assert.throws(() => content(media('image', 'image/tiff')), /takes JPEG, PNG, GIF and WebP images alone/);
  assert.throws(() => content(media('audio', 'audio/wav')), /takes no audio/);
  const result = { kind: 'tool-result', callId: 'call:1', parts: [media('audio', 'audio/wav')] } as Part;
  const { body, dropped } = encode({ turns: [...step.slice(0, 2), { role: 'user', parts: [result] }] });
  assert.match(JSON.stringify(body['messages']), /\(audio that cannot be shown\)/);
  assert.deepEqual(dropped, ['audio']);
});

test('an event stream with absurd lengths is refused', () => {
  for (const length of [0, 15, 2 ** 31]) {
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32BE(length);
    assert.throws(() => eventStream.createReader(() => {}).feed(prefix), /is \d+ bytes long/);
  }
});

async function signedFor(url: string, settings: { region?: string } = {}): Promise<string> {
  let scheme: ComputedScheme<unknown> | undefined;
  const host = fakeHost();
  const extend = (_point: ExtensionPoint, extension: unknown) => {
    scheme = extension as ComputedScheme<unknown>;
  };
  await aws.setup({ ...host, extend } as typeof host, {});
  const credential = scheme!.open(scheme!.config.parse({ service: 'bedrock', ...settings }), secret('AKID:secret'), {
    clock: host.clock,
    fetch,
  });
  const body = [Buffer.from('a'), Buffer.from('b')];
  const headers = await credential.authorize({ method: 'POST', url, headers: {}, body });
  return String(headers['authorization']);
}

test('the region is that of the host unless one is set', async () => {
  const path = 'model/m/converse';
  assert.match(
    await signedFor(`https://bedrock-runtime.us-gov-west-1.amazonaws.com/${path}`),
    /\/us-gov-west-1\/bedrock\//,
  );
  assert.match(await signedFor(`https://bedrock.example/${path}`, { region: 'eu-west-3' }), /\/eu-west-3\/bedrock\//);
  await assert.rejects(signedFor(`https://bedrock.example/${path}`), /names no region: write auth\.region/);
});
