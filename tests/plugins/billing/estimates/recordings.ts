/** The recorded calls whose vendors counted their prompt, and what the gateway estimates for each when it is interrupted. */
import assert from 'node:assert/strict';
import { type JsonObject, listOf } from '../../../../core/json/json.ts';
import { PromptMemory } from '../../../../plugins/billing/estimates/prompt-memory.ts';
import type { Likely } from '../../../../plugins/billing/reservations/outcome.ts';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import { promptTokens, type Usage } from '../../../../plugins/common/domain/usage.ts';
import { opened, type RequestBody } from '../../../../plugins/common/wire/protocols.ts';
import { KeptRequests } from '../../../../plugins/protocol-convert/metering/kept-requests.ts';
import { LiveReport } from '../../../../plugins/protocol-convert/metering/report.ts';
import { preflightChat } from '../../../../plugins/protocol-convert/protocols/chat/preflight.ts';
import { preflightGemini } from '../../../../plugins/protocol-convert/protocols/gemini/preflight.ts';
import { protocolNamed } from '../../../../plugins/protocol-convert/protocols/index.ts';
import { preflightMessages } from '../../../../plugins/protocol-convert/protocols/messages/preflight.ts';
import { preflightResponses } from '../../../../plugins/protocol-convert/protocols/responses/preflight.ts';
import { RequestConversation } from '../../../../plugins/protocol-convert/request/conversation.ts';
import { fakeExchange } from '../../../helpers/fakes.ts';
import { type Family, families, type Recording, recordings } from '../../../helpers/recordings.ts';

export interface Counted {
  readonly name: string;
  readonly call: Call;
  readonly to: { readonly provider: string; readonly model: string };
  readonly mark: number;
  readonly hosted: boolean;
  readonly usage: Usage;
  /** Tokens of the prompt, as the vendor counted. */
  readonly prompt: number;
  /** Bytes of the answer's text. */
  readonly bytes: number;
  /** Tokens of the prompt by a public vocabulary. */
  readonly tokens: () => Promise<number | undefined>;
}

const preflights: Record<Family, (body: RequestBody) => Call> = {
  chat: preflightChat,
  messages: preflightMessages,
  responses: preflightResponses,
  gemini: (body) => preflightGemini(body, 'model', 'generateContent'),
};

/** In a fixed order. */
export function countedCalls(): Counted[] {
  return families.flatMap((family) => recordings(family).flatMap((one) => counted(one) ?? []));
}

function counted(recording: Recording): Counted | undefined {
  const { family, name, status, request, provider, model } = recording;
  if (status >= 300 || request === undefined || /count_?tokens/i.test(recording.path)) return undefined;
  // Some recorders left out what the vendor's path had.
  const json: JsonObject = { model: 'MODEL', ...JSON.parse(request.toString()) };
  const call = preflights[family]({ json, bytes: request } as unknown as RequestBody);
  const { usage, bytes, isReported } = readBy(recording, call);
  if (!isReported || promptTokens(usage) === 0) return undefined;
  const requested = { protocol: protocolNamed(family)!, call, json, prepare: () => assertNever() };
  const exchange = fakeExchange({ facts: [[opened, requested]], request: { bodyBytes: request.length } });
  const talk = new RequestConversation(exchange, requested, new KeptRequests());
  talk.keep();
  return {
    ...{ name, call, to: { provider, model }, mark: talk.mark, usage, bytes, prompt: promptTokens(usage) },
    hosted: (call.toolCalls ?? 0) > 0 || (listOf(json['tools']).length > 0 && (call.images ?? 0) > 0),
    tokens: () => talk.countPrompt(),
  };
}

function assertNever(): never {
  throw new Error('nothing is sent');
}

/** What the gateway's meter reads of an answer, up to `share` of its bytes. */
export function readBy({ family, isStream, response, headers }: Recording, call: Call, share = 1) {
  const meter = protocolNamed(family)!.createUsageMeter(call, { headers, withholdUsage: false });
  const text = response.toString();
  const array = text.trimStart().startsWith('[');
  if (!isStream) meter.whole(JSON.parse(text));
  else if (array) for (const one of JSON.parse(text)) meter.payload(one, undefined);
  else {
    const frames = text.split(/\r?\n\r?\n/).filter((frame) => frame.trim() !== '');
    for (const frame of frames.slice(0, Math.ceil(frames.length * share))) meter.frame(Buffer.from(`${frame}\n\n`));
  }
  const report = new LiveReport(meter, call, { contextTokens: undefined, maxOutputTokens: undefined });
  const { reading } = meter;
  return {
    meter,
    report,
    usage: reading.usage,
    bytes: meter.text.bytes,
    isReported: reading.hasInput && reading.hasOutput,
  };
}

/** What is likely after a memory has learnt these calls. */
export function likelyOf(earlier: readonly Counted[], one: Counted, { inputTokens } = one.call): Likely {
  const memory = new PromptMemory();
  for (const { call, to, mark, usage, bytes } of earlier)
    memory.learn({ accountId: 'account', inputTokens: call.inputTokens }, mark, to, usage, bytes, 0);
  return memory.likely({ accountId: 'account', inputTokens }, one.mark, one.to, 1_000);
}

/** The prompt that is charged then; never above what was held. */
export function estimateAfter(earlier: readonly Counted[], one: Counted, call = one.call): number | undefined {
  const { prompt } = likelyOf(earlier, one, call);
  if (prompt === undefined) return undefined;
  assert.ok(promptTokens(prompt) <= call.inputTokens, one.name);
  return promptTokens(prompt);
}
