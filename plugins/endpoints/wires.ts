/** The vendors' protocols by the names that providers list under `speaks`, and how the key travels in them. Pure. */
import type { WireHeaders } from '../common/kit/upstream-request.ts';

export const wire = {
  openaiEmbeddings: 'openai-embeddings',
  geminiEmbeddings: 'gemini-embeddings',
  cohereRerank: 'cohere-rerank',
  jinaRerank: 'jina-rerank',
  voyageRerank: 'voyage-rerank',
  openaiDecisions: 'openai-decisions',
  typesafeSystemone: 'typesafe-systemone',
  openaiModerations: 'openai-moderations',
  openaiSpeech: 'openai-speech',
  openaiTranscriptions: 'openai-transcriptions',
} as const;

/** The path, below the base URL, of the endpoint of each that is called most. */
export const wirePaths: ReadonlyMap<string, string> = new Map([
  [wire.openaiEmbeddings, '/embeddings'],
  [wire.geminiEmbeddings, '/models'],
  [wire.cohereRerank, '/rerank'],
  [wire.jinaRerank, '/rerank'],
  [wire.voyageRerank, '/rerank'],
  [wire.openaiDecisions, '/decisions'],
  [wire.typesafeSystemone, '/systemone'],
  [wire.openaiModerations, '/moderations'],
  [wire.openaiSpeech, '/audio/speech'],
  [wire.openaiTranscriptions, '/audio/transcriptions'],
]);

/** The gateway's endpoint for clients of each, and its operation. */
export const wireEndpoints = [
  [wire.openaiEmbeddings, 'embeddings', '/v1/embeddings'],
  [wire.geminiEmbeddings, 'embeddings', '/v1beta/models/{model}:embedContent'],
  [wire.cohereRerank, 'rerank', '/v2/rerank'],
  [wire.jinaRerank, 'rerank', '/v1/rerank'],
  [wire.voyageRerank, 'rerank', '/v1/rerank'],
  [wire.openaiDecisions, 'decisions', '/v1/decisions'],
  [wire.typesafeSystemone, 'decisions', '/v1/systemone'],
  [wire.openaiModerations, 'moderations', '/v1/moderations'],
  [wire.openaiSpeech, 'speech', '/v1/audio/speech'],
  [wire.openaiTranscriptions, 'transcriptions', '/v1/audio/transcriptions'],
] as const;

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
