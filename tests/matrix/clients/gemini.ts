/** A client of generate-content, as the official SDK words requests and reads answers. */
import assert from 'node:assert/strict';
import type {
  Client,
  ClientRequest,
  Meaning,
  PlayUsage,
  RequestPart,
  RequestResult,
  RequestTurn,
  Seen,
  SeenError,
} from '../scenario.ts';
import { dataFrames } from './frames.ts';

const meanings: Readonly<Record<string, readonly Meaning[]>> = {
  STOP: ['stop', 'stop-sequence'],
  MAX_TOKENS: ['length'],
  SAFETY: ['refusal'],
  PROHIBITED_CONTENT: ['refusal'],
};

interface Part {
  text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: Record<string, unknown> };
}
interface Usage {
  readonly promptTokenCount: number;
  readonly cachedContentTokenCount?: number;
  readonly candidatesTokenCount?: number;
  readonly thoughtsTokenCount?: number;
  readonly totalTokenCount: number;
}
interface Body {
  readonly candidates?: readonly {
    readonly index?: number;
    readonly content?: { readonly role?: string; readonly parts?: readonly Part[] };
    readonly finishReason?: string;
  }[];
  readonly promptFeedback?: { readonly blockReason?: string };
  readonly usageMetadata?: Usage;
  readonly modelVersion?: string;
  readonly error?: { readonly code: number; readonly message: string; readonly status: string };
}

export const geminiClient: Client = {
  protocol: 'gemini',
  lacks: new Set(['cache-write', 'stop-sequence']),

  word(request, { model, isStream }) {
    const config = configOf(request);
    const body = {
      ...(request.system === undefined ? {} : { systemInstruction: { parts: [{ text: request.system }] } }),
      contents: request.turns.map(contentOf),
      ...(request.tools === undefined ? {} : { tools: [{ functionDeclarations: request.tools.map(declarationOf) }] }),
      ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
    };
    const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return {
      path: `/v1beta/models/${model}:${method}`,
      headers: { 'x-goog-api-key': 'client-key' },
      body: JSON.stringify(body),
    };
  },

  readWhole: (text) => seen([JSON.parse(text) as Body]),

  readStream(text) {
    const bodies = dataFrames(text).map(({ event, data }) => {
      assert.equal(event, undefined, 'frames have no name');
      return JSON.parse(data) as Body;
    });
    const broken = bodies.findIndex((body) => body.error !== undefined);
    if (broken === -1) return seen(bodies);
    assert.equal(broken, bodies.length - 1, 'nothing comes after an error');
    const before = bodies.slice(0, broken);
    assert.ok(before.every((body) => finishOf(body) === undefined));
    return { ...soFar(partsOf(before)), error: errorOf(bodies[broken]!) };
  },

  readError: (body) => errorOf(JSON.parse(body)),
};

const hints = { temperature: 0.5, topP: 0.9, topK: 5, seed: 7, frequencyPenalty: 0.1, presencePenalty: 0.2 };

function configOf(request: ClientRequest): object {
  return {
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
    ...(request.stop === undefined ? {} : { stopSequences: request.stop }),
    ...(request.twice ? { candidateCount: 2 } : {}),
    ...(request.hints ? hints : {}),
    ...(request.reasons ? { thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } } : {}),
    ...(request.schema === undefined
      ? {}
      : { responseMimeType: 'application/json', responseJsonSchema: request.schema }),
  };
}

function declarationOf({ name, description, schema }: NonNullable<ClientRequest['tools']>[number]): unknown {
  return { name, description, parametersJsonSchema: schema };
}

function contentOf(turn: RequestTurn): unknown {
  switch (turn.by) {
    case 'user':
      return { role: 'user', parts: turn.parts.map(partOf) };
    case 'assistant':
      return {
        role: 'model',
        parts: [
          ...(turn.text === undefined ? [] : [{ text: turn.text }]),
          // Clients sign calls that no model has made with a word that is not checked.
          ...(turn.calls ?? []).map(({ id, name, input }, index) => ({
            functionCall: { id, name, args: input },
            ...(index === 0 ? { thoughtSignature: 'skip_thought_signature_validator' } : {}),
          })),
        ],
      };
    case 'echo':
      return { role: 'model', parts: turn.native };
    case 'tools':
      return { role: 'user', parts: turn.results.map(responseOf) };
  }
}

function partOf(part: RequestPart): unknown {
  if (part.kind === 'text') return { text: part.text };
  const name = part.kind === 'file' ? { displayName: part.name } : {};
  return { inlineData: { mimeType: part.mediaType, data: part.base64, ...name } };
}

function responseOf({ callId, name, text, image, isError }: RequestResult): unknown {
  return {
    functionResponse: {
      id: callId,
      name,
      response: isError ? { error: text } : { output: text },
      ...(image ? { parts: [partOf({ kind: 'image', ...image })] } : {}),
    },
  };
}

function finishOf(body: Body): string | undefined {
  return candidateOf(body, 0)?.finishReason ?? body.promptFeedback?.blockReason;
}

function candidateOf(body: Body, choice: number) {
  return body.candidates?.find(({ index }) => (index ?? 0) === choice);
}

function partsOf(bodies: readonly Body[], choice = 0): Part[] {
  return bodies.flatMap((body) => candidateOf(body, choice)?.content?.parts ?? []);
}

function seen(bodies: readonly Body[]): Seen {
  for (const body of bodies) {
    assert.equal(typeof body.modelVersion, 'string');
    for (const candidate of body.candidates ?? []) assert.equal(candidate.content?.role ?? 'model', 'model');
  }
  const finishes = bodies.map(finishOf).filter((finish) => finish !== undefined);
  assert.equal(finishes.length, 1, 'one finish reason');
  const read = soFar(partsOf(bodies));
  const usage = bodies.at(-1)!.usageMetadata;
  assert.ok(usage, 'the last body tells the usage');
  const reply = meanings[finishes[0]!] ?? [];
  // There is no word for calls: they end with STOP.
  const second = soFar(partsOf(bodies, 1)).text;
  return { ...read, second, meanings: read.calls.length > 0 ? ['tool-calls'] : reply, usage: usageOf(usage) };
}

function soFar(parts: readonly Part[]): Seen {
  return {
    text: parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join(''),
    second: '',
    refusal: '',
    reasoning: parts.map((part) => (part.thought ? (part.text ?? '') : '')).join(''),
    calls: parts
      .filter((part) => part.functionCall !== undefined)
      .map(({ functionCall: call }) => ({ id: call!.id ?? '', name: call!.name, input: call!.args })),
    meanings: [],
    sequence: undefined,
    usage: undefined,
    echo: parts,
    error: undefined,
  };
}

function usageOf(usage: Usage): Partial<PlayUsage> {
  const reasoning = usage.thoughtsTokenCount ?? 0;
  const output = (usage.candidatesTokenCount ?? 0) + reasoning;
  assert.equal(usage.totalTokenCount, usage.promptTokenCount + output);
  return { input: usage.promptTokenCount, cacheRead: usage.cachedContentTokenCount ?? 0, output, reasoning };
}

function errorOf({ error }: Body): SeenError {
  assert.ok(error && Number.isInteger(error.code) && typeof error.status === 'string');
  const details = (error as { details?: { fieldViolations?: { field: string }[] }[] }).details;
  const violation = details?.flatMap((detail) => detail.fieldViolations ?? [])[0];
  const field = violation?.field ?? /The field "([^"]+)"/.exec(error.message)?.[1];
  return { message: error.message, type: error.status, code: String(error.code), field };
}
