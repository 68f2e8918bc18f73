/** Every counter of the official clients' usage types is read by a meter, or ignored for a reason. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import { Counts } from '../../../../plugins/common/wire/counts.ts';
import { refuseUnmetered } from '../../../../plugins/common/wire/named.ts';
import { usageIn } from '../../../../plugins/endpoints/audio/transcriptions.ts';
import { geminiUsage, openaiUsage } from '../../../../plugins/endpoints/embeddings/vectors.ts';
import { ChatUsageMeter } from '../../../../plugins/protocol-convert/protocols/chat/usage-meter.ts';
import { GeminiUsageMeter } from '../../../../plugins/protocol-convert/protocols/gemini/usage-meter.ts';
import { MessagesUsageMeter } from '../../../../plugins/protocol-convert/protocols/messages/usage-meter.ts';
import { takeCalls } from '../../../../plugins/protocol-convert/protocols/responses/tool-usage.ts';
import { ResponsesUsageMeter } from '../../../../plugins/protocol-convert/protocols/responses/usage-meter.ts';
import { tokensOf, withAuthor } from '../../../../plugins/task-store/adapters/openai-images.ts';
import { liveUsage } from '../../../../plugins/websockets/live/usage.ts';
import { responseUsage, transcriptionUsage } from '../../../../plugins/websockets/realtime/usage.ts';
import { countersOf, declaredIn, sampleOf, watched } from '../../../helpers/declared-types.ts';

const modules = new URL('../../../../node_modules/', import.meta.url).pathname;
const openai = declaredIn(
  [
    ...['completions', 'responses/responses', 'realtime/realtime', 'beta/responses/responses'],
    ...['embeddings', 'images', 'audio/transcriptions'],
  ].map((name) => `${modules}openai/resources/${name}.d.ts`),
);
const anthropic = declaredIn(
  ['messages/messages', 'beta/messages/messages'].map((name) => `${modules}@anthropic-ai/sdk/resources/${name}.d.ts`),
);
const google = declaredIn([`${modules}@google/genai/dist/genai.d.ts`]);

const call: Call = {
  protocol: 'chat',
  model: 'm',
  stream: false,
  billable: true,
  inputTokens: 1,
  maxOutputTokens: undefined,
  choices: 1,
};
type Read = (usage: JsonObject) => unknown;
const chat: Read = (usage) => new ChatUsageMeter(call, { withholdUsage: false }).whole({ choices: [], usage });
const messages: Read = (usage) => new MessagesUsageMeter().whole({ content: [], usage });
const delta: Read = (usage) => new MessagesUsageMeter().payload({ type: 'message_delta', delta: {}, usage }, undefined);
const responses: Read = (usage) => new ResponsesUsageMeter().whole({ output: [], usage });
const tools: Read = (usage) => new ResponsesUsageMeter().whole({ output: [], usage: {}, tool_usage: usage });
const pictures: Read = (svg_usage) =>
  takeCalls(new Counts(), {}, [{ type: 'image_generation_call', status: 'completed', svg_usage }]);
const vectors: Read = (usage) => openaiUsage({ usage });
const painted: Read = (usage) => tokensOf(usage);
const googleVectors: Read = (usageMetadata) => geminiUsage({ usageMetadata });
const written: Read = (usage) => usageIn({ usage });
const drawn: Read = (svg_usage) => withAuthor({}, { svg_usage });
const gemini: Read = (usageMetadata) => new GeminiUsageMeter(call).whole({ candidates: [], usageMetadata });

const inSum = 'is part of a sum that is read, at the price of its rest';
const isSum = 'is the sum of counters that are read';
const isRest = 'is what is left of a sum beside the details that are read';

const image = {
  'image_gen.cached_tokens_details.cached_text_tokens': isRest,
  'image_gen.input_tokens_details.text_tokens': isRest,
  'image_gen.output_tokens_details.image_tokens': isRest,
  'image_gen.total_tokens': isSum,
};
const author = { reasoning_tokens: inSum, total_tokens: isSum };
const ofPictures = { 'input_tokens_details.text_tokens': isRest, total_tokens: isSum };
const ofSpeech = { 'input_token_details.text_tokens': isRest, total_tokens: isSum };
const noVector = 'no embedding has it';
const cacheWrites = { 'input_tokens_details.cache_write_tokens_details.ttl_30m_tokens': isRest };
const transcription = 'ConversationItemInputAudioTranscriptionCompletedEvent';

/** What no meter reads, by type and path, and why not. */
const ignored: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  CompletionUsage: {
    'completion_tokens_details.accepted_prediction_tokens': inSum,
    'completion_tokens_details.rejected_prediction_tokens': inSum,
    'completion_tokens_details.text_tokens': isRest,
    'prompt_tokens_details.text_tokens': isRest,
  },
  ResponseUsage: cacheWrites,
  BetaResponseUsage: cacheWrites,
  'Response.ToolUsage': image,
  'BetaResponse.ToolUsage': image,
  RealtimeResponseUsage: {
    'input_token_details.text_tokens': isRest,
    'output_token_details.text_tokens': isRest,
    total_tokens: isSum,
  },
  [`${transcription}.TranscriptTextUsageTokens`]: ofSpeech,
  'Transcription.Tokens': ofSpeech,
  'TranscriptionDiarized.Tokens': ofSpeech,
  'TranscriptionTextDoneEvent.Usage': ofSpeech,
  'ImagesResponse.Usage': { ...ofPictures, 'output_tokens_details.image_tokens': isRest },
  'ImageGenCompletedEvent.Usage': ofPictures,
  'ImageEditCompletedEvent.Usage': ofPictures,
  'ImagesResponse.SvgUsage': author,
  'ResponseOutputItem.ImageGenerationCall.SvgUsage': author,
  'BetaResponseOutputItem.ImageGenerationCall.SvgUsage': author,
  GenerateContentResponseUsageMetadata: {
    initialPromptTokenCount: inSum,
    'toolUsePromptTokensDetails[].tokenCount': inSum,
  },
  UsageMetadata: { 'toolUsePromptTokensDetails[].tokenCount': inSum, totalTokenCount: isSum },
  'UsageMetadata of vectors': {
    'promptTokensDetails[].tokenCount': inSum,
    ...Object.fromEntries(
      [
        ...['responseTokenCount', 'responseTokensDetails[].tokenCount', 'cachedContentTokenCount'],
        ...['cacheTokensDetails[].tokenCount', 'thoughtsTokenCount', 'toolUsePromptTokenCount'],
        'toolUsePromptTokensDetails[].tokenCount',
      ].map((name) => [name, noVector]),
    ),
  },
};

const walked: readonly (readonly [declared: typeof openai, type: string, read: Read, of?: string])[] = [
  [openai, 'CompletionUsage', chat],
  [openai, 'ResponseUsage', responses],
  [openai, 'BetaResponseUsage', responses],
  [openai, 'Response.ToolUsage', tools],
  [openai, 'BetaResponse.ToolUsage', tools],
  [openai, 'RealtimeResponseUsage', responseUsage],
  [openai, 'ConversationItemInputAudioTranscriptionCompletedEvent.TranscriptTextUsageTokens', transcriptionUsage],
  [openai, 'ConversationItemInputAudioTranscriptionCompletedEvent.TranscriptTextUsageDuration', transcriptionUsage],
  [anthropic, 'Usage', messages],
  [anthropic, 'BetaUsage', messages],
  [anthropic, 'MessageDeltaUsage', delta],
  [anthropic, 'BetaMessageDeltaUsage', delta],
  [google, 'GenerateContentResponseUsageMetadata', gemini],
  [google, 'UsageMetadata', liveUsage],
  [google, 'UsageMetadata', googleVectors, 'vectors'],
  [openai, 'CreateEmbeddingResponse.Usage', vectors],
  [openai, 'ImagesResponse.Usage', painted],
  [openai, 'ImageGenCompletedEvent.Usage', painted],
  [openai, 'ImageEditCompletedEvent.Usage', painted],
  [openai, 'ImagesResponse.SvgUsage', drawn],
  [openai, 'ResponseOutputItem.ImageGenerationCall.SvgUsage', pictures],
  [openai, 'BetaResponseOutputItem.ImageGenerationCall.SvgUsage', pictures],
  [openai, 'Transcription.Tokens', written],
  [openai, 'Transcription.Duration', written],
  [openai, 'TranscriptionDiarized.Tokens', written],
  [openai, 'TranscriptionDiarized.Duration', written],
  [openai, 'TranscriptionVerbose.Usage', written],
  [openai, 'TranscriptionTextDoneEvent.Usage', written],
];

for (const [declared, type, read, of] of walked) {
  const label = of === undefined ? type : `${type} of ${of}`;
  test(`${label}: each counter is read, or ignored for a reason`, () => {
    const counters = countersOf(declared, type);
    assert.ok(counters.length > 0);
    const { value, read: seen } = watched(sampleOf(counters));
    read(value);
    const reasons = ignored[label] ?? {};
    const unread = counters.filter((counter) => !seen.has(counter));
    assert.deepEqual(unread.sort(), Object.keys(reasons).sort());
  });
}

/** Types of the same files with usage in their name that are no answer's usage, or parts of one that is walked. */
const others: readonly RegExp[] = [
  // Parts of the types above, which the walk goes through.
  /^RealtimeResponseUsage(Input|Output)TokenDetails$/,
  /^Beta(Advisor|Compaction|Fallback)?(Message)?IterationUsage$/,
  /^Beta(ServerTool|Iterations)Usage$|^ServerToolUsage$/,
  // Free: what is left of a credit that the answer did not use.
  /^BetaFallbackCreditUsage$/,
  // Items of earlier turns.
  /(InputItem|ResponseItem)\.ImageGenerationCall\.SvgUsage$/,
  // No endpoint of the gateway: stored caches, and the interactions interface.
  /^CachedContentUsageMetadata$|^Interactions\.Usage$|\bUsage\$$/,
];

test('no other usage type has come with the clients', () => {
  const known = new Set(walked.map(([, type]) => type));
  for (const declared of [openai, anthropic, google]) {
    const found = [...declared.keys()].filter((name) =>
      /Usage(Metadata|Tokens|Duration)?$|\.(Tokens|Duration)$/.test(name),
    );
    const unknown = found.filter((name) => /^[A-Z]/.test(name.split('.').at(-1)!) && !known.has(name));
    assert.deepEqual(
      unknown.filter((name) => !others.some((pattern) => pattern.test(name))),
      [],
    );
  }
});

/** The `type` of each tool in a union, as the client declares it. */
function typesOf(declared: typeof openai, union: string): string[] {
  return declared
    .get(union)![0]!
    .type.split('|')
    .flatMap((part) => {
      const name = part.trim();
      const members = declared.get(name) ?? declared.get(`Tool.${name.split('.').at(-1)}`) ?? [];
      const literal = members.find((one) => one.name === 'type')?.type ?? '';
      return [...literal.matchAll(/'([^']+)'/g)].map(([, text]) => text!);
    });
}

test('each tool of the clients is metered, or the client runs it', () => {
  for (const [protocol, types] of [
    ['responses', typesOf(openai, 'Tool')],
    ['messages', [...typesOf(anthropic, 'ToolUnion'), ...typesOf(anthropic, 'BetaToolUnion')]],
  ] as const) {
    assert.ok(types.length > 12, types.join());
    for (const type of types) refuseUnmetered(protocol, { tools: [{ type }] }, new Set());
  }
  const members = google.get('Tool')!.map(({ name }) => name);
  assert.ok(members.length > 8);
  for (const name of members) refuseUnmetered('gemini', { tools: [{ [name]: {} }] }, new Set());
});
