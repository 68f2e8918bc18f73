/** Every endpoint of this plugin. */
import type { EndpointDescription } from './description.ts';
import { geminiEmbeddings } from './embeddings/gemini.ts';
import { openaiEmbeddings } from './embeddings/openai.ts';
import { moderations } from './moderations.ts';
import { rerankEndpoints } from './rerank/endpoints.ts';

export const endpointTable: readonly EndpointDescription[] = [
  openaiEmbeddings,
  ...geminiEmbeddings,
  ...rerankEndpoints,
  moderations,
];
