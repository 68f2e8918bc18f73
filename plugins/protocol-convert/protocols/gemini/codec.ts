/** The generate-content protocol's words for the common tongue, put together. */
import { readCount } from '../../../../core/usage.ts';
import type { Codec } from '../../codec.ts';
import type { Spelling } from '../../losses.ts';
import { decodeRequest } from './decode-request.ts';
import { decodeReply, GeminiDecoder } from './decode-stream.ts';
import { encodeReply } from './encode-reply.ts';
import { encodeRequest } from './encode-request.ts';
import { GeminiEncoder } from './encode-stream.ts';
import { slotMark, withoutSeals } from './signatures.ts';

const spelling: Spelling = {
  tools: 'tools',
  toolChoice: 'toolConfig.functionCallingConfig',
  maxOutputTokens: 'generationConfig.maxOutputTokens',
  temperature: 'generationConfig.temperature',
  topP: 'generationConfig.topP',
  topK: 'generationConfig.topK',
  stop: 'generationConfig.stopSequences',
  choices: 'generationConfig.candidateCount',
  seed: 'generationConfig.seed',
  frequencyPenalty: 'generationConfig.frequencyPenalty',
  presencePenalty: 'generationConfig.presencePenalty',
  logprobs: 'generationConfig.responseLogprobs',
  reasoning: 'generationConfig.thinkingConfig',
  output: 'generationConfig.responseJsonSchema',
  serviceTier: 'serviceTier',
  outputKinds: 'generationConfig.responseModalities',
  audioOptions: 'generationConfig.speechConfig',
  imageOptions: 'generationConfig.imageConfig',
  strictTools: 'toolConfig.functionCallingConfig.mode',
  reasoningHistory: 'contents[].parts[].thought',
  image: 'contents[].parts[].inlineData',
  document: 'contents[].parts[].inlineData',
  audio: 'contents[].parts[].inlineData',
  video: 'contents[].parts[].inlineData',
  strayResults: 'contents[].parts[].functionResponse',
  file: 'contents[].parts[].fileData',
};

export const geminiCodec: Codec = {
  spelling,
  sealMark: slotMark,
  decodeRequest,
  needsBytes: ['image', 'document', 'audio', 'video'],
  encodeRequest,
  createDecoder: (events) => new GeminiDecoder(events),
  decodeReply,
  createEncoder: (context) => new GeminiEncoder(context),
  encodeReply,
  withoutSeals,
  counting: {
    /** The whole request in its wrapper: only so are the system's words and the tools counted too. */
    request: ({ path, body }) => {
      const model = decodeURIComponent(path.slice('/models/'.length, path.lastIndexOf(':')));
      const generateContentRequest = { model: `models/${model}`, ...body };
      return { path: `${path.slice(0, path.lastIndexOf(':'))}:countTokens`, body: { generateContentRequest } };
    },
    tokens: (json) => readCount(json['totalTokens'] ?? json['total_tokens']),
  },
};
