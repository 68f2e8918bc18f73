/** The vendors' protocols by the names that providers list under `speaks`, and how the key travels in them. Pure. */
import type { WireHeaders } from '../common/kit/upstream-request.ts';

export const wire = {
  openaiEmbeddings: 'openai-embeddings',
  geminiEmbeddings: 'gemini-embeddings',
  cohereRerank: 'cohere-rerank',
  jinaRerank: 'jina-rerank',
  voyageRerank: 'voyage-rerank',
  openaiModerations: 'openai-moderations',
  openaiSpeech: 'openai-speech',
  openaiTranscriptions: 'openai-transcriptions',
} as const;

export const bearer: WireHeaders = {
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
};

export const googleKey: WireHeaders = {
  auth: { header: 'x-goog-api-key', value: '{key}' },
  passedHeaders: [],
  defaultHeaders: {},
};
