/** Requests of every kind to the gateway, as any program may make them. Pure. */

/** The protocol of a conversation, or what else is made: it chooses the SDK and its method. */
export type CallName =
  | 'chat'
  | 'responses'
  | 'messages'
  | 'gemini'
  | 'image'
  | 'video'
  | 'speech'
  | 'transcription'
  | 'embedding'
  | 'rerank'
  | 'moderation';

export interface ApiCall {
  readonly name: CallName;
  readonly path: string;
  /** Beside the key and the content type. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** Sent as the member `file` of a form, instead of JSON. */
  readonly file?: File | { readonly name: string };
}

/** Where each protocol has its key. */
export function keyHeader({ name }: Pick<ApiCall, 'name'>, key: string): Readonly<Record<string, string>> {
  if (name === 'messages') return { 'x-api-key': key };
  if (name === 'gemini') return { 'x-goog-api-key': key };
  return { authorization: `Bearer ${key}` };
}

/** Members without a value are left out. */
function given(members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== ''));
}

interface ImageOrder {
  readonly model: string;
  readonly prompt: string;
  readonly n: number;
  /** Pixels, or a ratio beside a resolution. */
  readonly size?: string | undefined;
  readonly resolution?: string | undefined;
  readonly quality?: string | undefined;
  /** As data URLs. */
  readonly images?: readonly string[];
}
export const imageCall = ({ images = [], ...order }: ImageOrder): ApiCall => ({
  name: 'image',
  path: '/v1/images/generations',
  body: given({ ...order, image_urls: images.length === 0 ? undefined : images }),
});

interface VideoOrder {
  readonly model: string;
  readonly prompt: string;
  readonly seconds: number;
  readonly size?: string | undefined;
  /** The first frame, as a data URL. */
  readonly image?: string | undefined;
}
export const videoCall = ({ seconds, image, ...order }: VideoOrder): ApiCall => ({
  name: 'video',
  path: '/v1/videos',
  body: given({ ...order, seconds: String(seconds), input_reference: image }),
});

interface SpeechOrder {
  readonly model: string;
  readonly input: string;
  readonly voice: string;
  readonly format: string;
}
export const speechCall = ({ format, ...order }: SpeechOrder): ApiCall => ({
  name: 'speech',
  path: '/v1/audio/speech',
  body: given({ ...order, response_format: format }),
});

export const transcriptionCall = (
  model: string,
  file: NonNullable<ApiCall['file']>,
  format: string | undefined,
): ApiCall => ({
  name: 'transcription',
  path: '/v1/audio/transcriptions',
  body: given({ model, response_format: format }),
  file,
});

export const embeddingCall = (model: string, input: readonly string[]): ApiCall => ({
  name: 'embedding',
  path: '/v1/embeddings',
  body: { model, input },
});

export const rerankCall = (model: string, query: string, documents: readonly string[]): ApiCall => ({
  name: 'rerank',
  path: '/v1/rerank',
  body: { model, query, documents },
});

export const moderationCall = (model: string, input: string): ApiCall => ({
  name: 'moderation',
  path: '/v1/moderations',
  body: { model, input },
});

const samplePrompt = 'A lighthouse of paper';
/** A first call of a model, by its kind; undefined: there are templates for it, or no single request. */
export function sampleCall(kind: string, model: string): ApiCall | undefined {
  switch (kind) {
    case 'image':
      return imageCall({ model, prompt: samplePrompt, n: 1 });
    case 'video':
      return videoCall({ model, prompt: samplePrompt, seconds: 5, image: samplePicture });
    case 'speech':
      return speechCall({ model, input: 'Hello', voice: 'alloy', format: 'mp3' });
    case 'transcription':
      return transcriptionCall(model, { name: 'speech.mp3' }, 'json');
    case 'embedding':
      return embeddingCall(model, ['A cat on a mat', 'A cat on a sofa']);
    case 'rerank':
      return rerankCall(model, 'Who lies on the mat?', ['A cat lies on the mat.', 'It rains.']);
    case 'moderation':
      return moderationCall(model, 'Hello');
    default:
      return undefined;
  }
}
/** Stands for a file of the reader's own: snippets name a file in its place. */
const samplePicture = `data:image/png;base64,iVBORw0KGgo${'A'.repeat(500)}`;
