/** A vendor of generate-content: answers in its true wire form, and reads requests as strictly as the real one. */
import assert from 'node:assert/strict';
import type { Received } from '../../helpers/vendor.ts';
import type { Arrived, ArrivedPart, ArrivedTurn, Meaning, Play, VendorWords } from '../scenario.ts';
import { type Json, list, object, onlyMembers, pieces, text } from './pieces.ts';

const reasons: Readonly<Record<Meaning, string>> = {
  stop: 'STOP',
  'stop-sequence': 'STOP',
  'tool-calls': 'STOP',
  length: 'MAX_TOKENS',
  refusal: 'PROHIBITED_CONTENT',
};

export const geminiVendor: VendorWords = {
  protocol: 'gemini',
  lacks: new Set(['cache-write', 'stop-sequence', 'refusal', 'reasoning-history']),

  whole: (play, model) => `${JSON.stringify(bodyOf(play, model, partsOf(play, 'whole'), true), null, 2)}\n`,

  stream(play, model) {
    if (play.isBlocked) return [frame(bodyOf(play, model, [], true))];
    const parts = partsOf(play, 'pieces');
    return parts.map((part, index) => frame(bodyOf(play, model, [part], index === parts.length - 1)));
  },

  fault: (fault) => ({
    headers: { 'content-type': 'application/json; charset=UTF-8' },
    ...(fault === 'overloaded'
      ? { status: 503, body: JSON.stringify({ error: overloaded }, null, 2) }
      : { status: 400, body: JSON.stringify({ error: tooLong }, null, 2) }),
  }),

  faultFrames: () => [frame({ error: overloaded })],

  read: (request) => read(request),
};

const overloaded = { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' };
const tooLong = {
  code: 400,
  message: 'The input token count (300) exceeds the maximum number of tokens allowed (200).',
  status: 'INVALID_ARGUMENT',
};

const frame = (payload: object) => `data: ${JSON.stringify(payload)}\r\n\r\n`;

/** The signature stands on the first call of a step, or on the text. */
function partsOf(play: Play, form: 'whole' | 'pieces'): object[] {
  const cut = (said: string) => (form === 'whole' ? [said] : pieces(said));
  const signature = play.reasoning === undefined ? {} : { thoughtSignature: play.reasoning.signature };
  const said = play.refusal ?? play.text;
  const texts: object[] = said === undefined ? [] : cut(said).map((piece) => ({ text: piece }));
  if (texts.length > 0 && play.calls === undefined) Object.assign(texts.at(-1)!, signature);
  return [
    ...(play.reasoning ? cut(play.reasoning.text).map((piece) => ({ text: piece, thought: true })) : []),
    ...texts,
    ...(play.calls ?? []).map(({ id, name, input }, index) => ({
      functionCall: { id, name, args: input },
      ...(index === 0 ? signature : {}),
    })),
  ];
}

function bodyOf(play: Play, model: string, parts: readonly object[], isLast: boolean): object {
  const finish = isLast ? { finishReason: reasons[play.meaning] } : {};
  const second =
    isLast && play.second !== undefined
      ? [{ content: { parts: [{ text: play.second }], role: 'model' }, finishReason: 'STOP', index: 1 }]
      : [];
  return {
    ...(play.isBlocked
      ? { promptFeedback: { blockReason: 'SAFETY', safetyRatings: [] } }
      : { candidates: [{ content: { parts, role: 'model' }, ...finish, index: 0 }, ...second] }),
    usageMetadata: usageOf(play, isLast),
    modelVersion: model,
    responseId: 'QH4kaZ_0L7',
  };
}

/** Cumulative in every frame. */
function usageOf({ usage }: Play, isLast: boolean): object {
  const output = isLast ? usage.output : 1 + usage.reasoning;
  return {
    promptTokenCount: usage.input,
    ...(output > usage.reasoning ? { candidatesTokenCount: output - usage.reasoning } : {}),
    totalTokenCount: usage.input + output,
    ...(usage.cacheRead > 0 ? { cachedContentTokenCount: usage.cacheRead } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
    ...(usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
  };
}

// ---------------------------------------------------------------------------------------------------------- the request

const known = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'safetySettings'];
const knownConfig = [
  ...['maxOutputTokens', 'stopSequences', 'thinkingConfig', 'responseMimeType', 'responseJsonSchema'],
  ...['responseSchema', 'candidateCount', 'temperature', 'topP', 'topK', 'seed'],
  ...['frequencyPenalty', 'presencePenalty'],
];

function read({ url, headers, body }: Received): Arrived {
  const at = /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent\?alt=sse)$/.exec(url);
  assert.ok(at, `the path ${url}`);
  assert.equal(headers['x-goog-api-key'], 'vendor-key');
  const json = object(JSON.parse(body.toString()), 'the body');
  onlyMembers(json, known, 'the body');
  const config = json['generationConfig'] === undefined ? {} : object(json['generationConfig'], 'generationConfig');
  onlyMembers(config, knownConfig, 'generationConfig');
  const thinking = config['thinkingConfig'] === undefined ? {} : object(config['thinkingConfig'], 'thinkingConfig');
  onlyMembers(thinking, ['includeThoughts', 'thinkingLevel'], 'thinkingConfig');
  const turns = list(json['contents'], 'contents').map(turnOf);
  assert.equal(turns[0]?.by, 'user', 'the first content is the user’s');
  assertAnswered(turns);
  return {
    model: at[1]!,
    isStream: at[2] !== 'generateContent',
    system: json['systemInstruction'] === undefined ? '' : systemOf(json['systemInstruction']),
    turns,
    tools: json['tools'] === undefined ? [] : toolsOf(list(json['tools'], 'tools')),
    maxOutputTokens: config['maxOutputTokens'] as number | undefined,
    stop: config['stopSequences'] as string[] | undefined,
    schema: schemaOf(config),
    temperature: config['temperature'] as number | undefined,
    choices: config['candidateCount'] as number | undefined,
    effort: (thinking['thinkingLevel'] as string | undefined)?.toLowerCase(),
  };
}

function systemOf(instruction: unknown): string {
  const parts = list(object(instruction, 'systemInstruction')['parts'], 'parts');
  return parts.map((part) => text(part['text'], 'text')).join('\n\n');
}

function turnOf(content: Json): ArrivedTurn {
  const { role } = content;
  assert.ok(role === 'user' || role === 'model', `the role ${String(role)}`);
  const parts = list(content['parts'], 'parts');
  assert.ok(parts.length > 0, 'parts are not empty');
  return { by: role === 'user' ? 'user' : 'assistant', parts: parts.map((part) => partOf(part, role)) };
}

function partOf(part: Json, role: string): ArrivedPart {
  const signature = part['thoughtSignature'] as string | undefined;
  if (part['thought'] === true) {
    assert.equal(role, 'model');
    return { kind: 'reasoning', text: text(part['text'], 'text'), signature };
  }
  if (part['text'] !== undefined) return { kind: 'text', text: text(part['text'], 'text') };
  if (part['inlineData'] !== undefined) {
    const inline = inlineOf(part);
    const kind = /^(image|audio)\//.exec(inline.mediaType)?.[1] as 'image' | 'audio' | undefined;
    return { kind: kind ?? 'file', ...inline };
  }
  if (part['functionCall'] !== undefined) {
    assert.equal(role, 'model');
    const { id, name, args } = object(part['functionCall'], 'functionCall');
    // Calls without an id are answered by name.
    return {
      kind: 'call',
      id: (id ?? name) as string,
      name: text(name, 'name'),
      input: object(args, 'args'),
      signature,
    };
  }
  return resultOf(object(part['functionResponse'], 'functionResponse'));
}

function inlineOf(part: Json): { mediaType: string; base64: string } {
  const { mimeType, data } = object(part['inlineData'], 'inlineData');
  return { mediaType: text(mimeType, 'mimeType'), base64: text(data, 'data') };
}

function resultOf({ id, name, response, parts }: Json): ArrivedPart {
  const reported = object(response, 'response');
  const isError = 'error' in reported;
  const [only] = Object.values(reported);
  return {
    kind: 'result',
    callId: (id ?? text(name, 'name')) as string,
    text: typeof only === 'string' ? only : JSON.stringify(reported),
    images: parts === undefined ? [] : list(parts, 'parts').map(inlineOf),
    isError,
  };
}

/** As many responses as calls, in the one content that follows; each first call of a step is signed. */
function assertAnswered(turns: readonly ArrivedTurn[]): void {
  for (const [index, turn] of turns.entries()) {
    const calls = turn.parts.filter((part) => part.kind === 'call');
    const results = (turns[index + 1]?.parts ?? []).filter((part) => part.kind === 'result');
    if (turn.by === 'user') continue;
    assert.deepEqual(
      results.map((part) => part.callId),
      calls.map((part) => part.id),
      'the next content has a response for each call',
    );
    if (calls.length > 0) assert.ok(calls[0]!.signature, 'the first call of a step is signed');
  }
}

function toolsOf(tools: readonly Json[]) {
  assert.equal(tools.length, 1, 'one tool object');
  return list(tools[0]!['functionDeclarations'], 'functionDeclarations').map((declaration) => {
    const { name, description, parametersJsonSchema: schema } = declaration;
    assert.match(text(name, 'name'), /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/);
    return {
      name: name as string,
      description: description as string,
      schema: object(schema, 'parametersJsonSchema'),
    };
  });
}

function schemaOf(config: Json): object | undefined {
  const { responseJsonSchema: schema, responseMimeType: type } = config;
  if (schema === undefined) return undefined;
  assert.equal(type, 'application/json');
  return object(schema, 'responseJsonSchema');
}
