/** The generate-content codec between the wire format and the canonical format. */

import type { Codec } from '../../../common/canonical/codec.ts';
import type { Spelling } from '../../../common/canonical/dropped-parameters.ts';
import { readCount } from '../../../common/domain/usage.ts';
import { sealPrefixBase64 } from '../../encoding/sealed-text.ts';
import { decodeRequest } from './decode/request.ts';
import { decodeReply, GeminiDecoder } from './decode/stream.ts';
import { encodeReply } from './encode/reply.ts';
import { encodeRequest } from './encode/request.ts';
import { GeminiEncoder } from './encode/stream.ts';
import { withoutSeals } from './signatures.ts';

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
  documentNames: 'contents[].parts[].inlineData.displayName',
  image: 'contents[].parts[].inlineData',
  document: 'contents[].parts[].inlineData',
  audio: 'contents[].parts[].inlineData',
  video: 'contents[].parts[].inlineData',
  strayResults: 'contents[].parts[].functionResponse',
  file: 'contents[].parts[].fileData',
};

export const geminiCodec: Codec = {
  spelling,
  sealMark: sealPrefixBase64,
  conversation: 'contents',
  decodeRequest,
  needsBytes: ['image', 'document', 'audio', 'video'],
  encodeRequest,
  createDecoder: (events) => new GeminiDecoder(events),
  deltaPaths: [['candidates', '0', 'content', 'parts', '0', 'text']],
  decodeReply,
  createEncoder: (context) => new GeminiEncoder(context),
  encodeReply,
  withoutSeals,
  counting: {
    /** The whole request in its wrapper: otherwise system texts and tools are not counted. */
    request: ({ path, body }) => {
      const model = decodeURIComponent(path.slice('/models/'.length, path.lastIndexOf(':')));
      const generateContentRequest = { model: `models/${model}`, ...body };
      return { path: `${path.slice(0, path.lastIndexOf(':'))}:countTokens`, body: { generateContentRequest } };
    },
    tokens: (json) => readCount(json['totalTokens'] ?? json['total_tokens']),
  },
};
