/** Path → the service that answers it. Pure. */
import { openaiSpeech, openaiTranscriptions } from './audio.ts';
import { openaiDecisions, typesafeSystemone } from './decisions.ts';
import { googleEmbeddings, openaiEmbeddings } from './embeddings.ts';
import { openaiModerations } from './moderations.ts';
import { rerankOf } from './rerank.ts';
import { sandboxSearch } from './search.ts';
import type { Service } from './service.ts';

export interface ServiceRoute {
  readonly kind: 'service';
  readonly service: Service;
  readonly pathModel: string | undefined;
  readonly method: string | undefined;
}

/** Two vendors have other shapes at the same path: theirs have a prefix of the sandbox's own. */
const services = new Map<string, Service>([
  ['/embeddings', openaiEmbeddings],
  ['/decisions', openaiDecisions],
  ['/systemone', typesafeSystemone],
  ['/moderations', openaiModerations],
  ['/audio/speech', openaiSpeech],
  ['/audio/transcriptions', openaiTranscriptions],
  ['/audio/translations', openaiTranscriptions],
  ['/search', sandboxSearch],
  ['/v2/rerank', rerankOf('cohere')],
  ['/jina/v1/rerank', rerankOf('jina')],
  ['/voyage/v1/rerank', rerankOf('voyage')],
]);

const embedPath = /^(?:\/v1(?:beta|alpha)?)?\/models\/(.+)(?::|%3A)(embedContent|batchEmbedContents)$/i;

export function serviceRouteOf(method: string, path: string): ServiceRoute | undefined {
  if (method !== 'POST') return undefined;
  const service = services.get(path) ?? services.get(path.replace(/^\/v1(?=\/)/, ''));
  if (service !== undefined) return { kind: 'service', service, pathModel: undefined, method: undefined };
  const match = embedPath.exec(path);
  if (match === null) return undefined;
  return { kind: 'service', service: googleEmbeddings, pathModel: match[1]!.replaceAll('%2F', '/'), method: match[2] };
}
