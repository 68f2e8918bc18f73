/** An example of each request with a body, and the kind of model that it needs. */
import { table } from '../../../../core/contract/table.ts';
import type { ModelKind } from '../../domain/models.ts';

export interface Example {
  /** Absent: the request names no model, or within its entries alone, as MODEL. */
  readonly kind?: ModelKind;
  /** Without the model, which is one that the gateway sells. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Members of a form that are files; the example has their names. */
  readonly files?: readonly string[];
  /** Members beside the others, or instead of them, for models that take no order without an image. */
  readonly withImage?: Readonly<Record<string, unknown>>;
  /** Headers that the request must have beside the usual ones. */
  readonly headers?: Readonly<Record<string, { readonly says: string; readonly example: string }>>;
}

const hello = 'Say hello in one word.';
const turns = [{ role: 'user', content: hello }] as const;
const contents = [{ role: 'user', parts: [{ text: hello }] }] as const;
const content = { parts: [{ text: 'A lighthouse at the coast' }] } as const;
const ranked = {
  kind: 'rerank',
  body: { query: 'Where do ships find their way?', documents: ['A lighthouse', 'A meadow'], top_n: 1 },
} as const;
/** A small picture. */
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAIklEQVR4nO3BAQ0AAADCoPdPbQ8HFAAAAAAAAAAAAAAA8G4wQAABiwCo9wAAAABJRU5ErkJggg==';
const waves = { type: 'text', text: 'Waves at the coast' } as const;
const item = { type: 'message', role: 'user', content: 'Ships pass at night.' } as const;

const listTools = { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } } as const;

/** By path, whatever its version, for the path with the model in it. Ids are those of objects that the account has made. */
export const jsonExamples = {
  '/v1/chat/completions': { kind: 'chat', body: { messages: turns, max_completion_tokens: 64 } },
  '/v1/responses': { kind: 'chat', body: { input: hello, max_output_tokens: 64 } },
  '/v1/responses/compact': {
    kind: 'chat',
    body: { input: [item, { type: 'message', role: 'assistant', content: 'They see the light.' }] },
  },
  '/v1/responses/input_tokens': { kind: 'chat', body: { input: hello } },
  '/v1/conversations': { body: { metadata: { topic: 'lighthouses' }, items: [item] } },
  '/v1/conversations/{conversation_id}': { body: { metadata: { topic: 'ships' } } },
  '/v1/conversations/{conversation_id}/items': { body: { items: [item] } },
  '/v1/messages': { kind: 'chat', body: { max_tokens: 64, messages: turns } },
  '/v1/messages/count_tokens': { kind: 'chat', body: { messages: turns } },
  '/v1/messages/batches': {
    kind: 'chat',
    body: { requests: [{ custom_id: 'first', params: { model: 'MODEL', max_tokens: 64, messages: turns } }] },
  },
  '/v1/completions': { kind: 'chat', body: { prompt: 'Once upon a time', max_tokens: 16 } },
  '/v1/batches': {
    body: { input_file_id: 'file-example', endpoint: '/v1/chat/completions', completion_window: '24h' },
  },
  '/v1/organization/projects': { body: { name: 'Lighthouses' } },
  '/v1/organization/projects/{project_id}': { body: { name: 'Harbours' } },
  '/v1/organization/users/{user_id}': { body: { role: 'viewer' } },
  '/v1/organization/invites': { body: { email: 'ben@example.com', role: 'developer' } },
  '/mcp': listTools,
  '/mcp/{bundle}': listTools,
  '/mcp/gateway': listTools,
  '/v1/uploads': { body: { purpose: 'user_data', filename: 'note.txt', bytes: 20, mime_type: 'text/plain' } },
  '/v1/uploads/{upload_id}/complete': { body: { part_ids: ['part-example'] } },
  ':generateContent': { kind: 'chat', body: { contents, generationConfig: { maxOutputTokens: 64 } } },
  ':streamGenerateContent': { kind: 'chat', body: { contents, generationConfig: { maxOutputTokens: 64 } } },
  ':countTokens': { kind: 'chat', body: { contents } },
  ':batchGenerateContent': {
    kind: 'chat',
    body: { batch: { display_name: 'first', input_config: { requests: { requests: [{ request: { contents } }] } } } },
  },
  '/v1/embeddings': { kind: 'embedding', body: { input: ['A lighthouse', 'A meadow'] } },
  ':embedContent': { kind: 'embedding', body: { content } },
  ':batchEmbedContents': { kind: 'embedding', body: { requests: [{ model: 'models/MODEL', content }] } },
  '/v1/rerank': ranked,
  '/v2/rerank': ranked,
  '/v1/search': { body: { query: 'lighthouses of Norway', max_results: 3 } },
  '/v1/vector_stores': { body: { name: 'Lighthouses', expires_after: { anchor: 'last_active_at', days: 7 } } },
  '/v1/vector_stores/{vector_store_id}': { body: { metadata: { topic: 'ships' } } },
  '/v1/vector_stores/{vector_store_id}/search': {
    body: { query: 'Where do ships find their way?', max_num_results: 3 },
  },
  '/v1/vector_stores/{vector_store_id}/files': { body: { file_id: 'file-example', attributes: { topic: 'ships' } } },
  '/v1/vector_stores/{vector_store_id}/files/{file_id}': { body: { attributes: { topic: 'harbours' } } },
  '/v1/vector_stores/{vector_store_id}/file_batches': { body: { file_ids: ['file-example'] } },
  '/v1/moderations': { kind: 'moderation', body: { input: 'A friendly sentence.' } },
  '/v1/decisions': {
    kind: 'decision',
    body: {
      input: 'I was charged twice.',
      questions: [
        { type: 'predicate', name: 'money', instructions: 'Is it about money?' },
        {
          type: 'choice',
          name: 'team',
          instructions: 'Which team?',
          choices: [{ value: 'billing' }, { value: 'sales' }],
        },
      ],
    },
  },
  '/v1/systemone': {
    kind: 'decision',
    body: { state: 'I was charged twice.', questions: { money: { type: 'noul', instructions: 'Is it about money?' } } },
  },
  '/v1/audio/speech': { kind: 'speech', body: { input: 'Good morning.', voice: 'alloy' } },
  '/upload/v1beta/files': {
    body: { file: { display_name: 'note.txt' } },
    headers: {
      'X-Goog-Upload-Protocol': {
        says: 'resumable: the answer’s header X-Goog-Upload-URL is where the pieces go; multipart or raw: the whole file follows.',
        example: 'resumable',
      },
      'X-Goog-Upload-Command': { says: 'start, where the protocol is resumable.', example: 'start' },
      'X-Goog-Upload-Header-Content-Length': { says: 'Bytes of the file.', example: '20' },
      'X-Goog-Upload-Header-Content-Type': { says: 'Type of the file.', example: 'text/plain' },
    },
  },
  '/upload/v1beta/files/{upload}': {
    body: {},
    headers: {
      'X-Goog-Upload-Offset': { says: 'Bytes that came before this piece.', example: '0' },
      'X-Goog-Upload-Command': {
        says: 'upload; with finalize, the piece is the last one.',
        example: 'upload, finalize',
      },
    },
  },
  ':asyncBatchEmbedContent': {
    kind: 'embedding',
    body: { batch: { display_name: 'first', input_config: { requests: { requests: [{ request: { content } }] } } } },
  },
  '/v1/realtime/client_secrets': {
    kind: 'realtime',
    body: {
      expires_after: { anchor: 'created_at', seconds: 600 },
      session: { type: 'realtime', model: 'MODEL', instructions: 'Be brief.' },
    },
  },
  '/v1/realtime/sessions': { kind: 'realtime', body: { instructions: 'Be brief.' } },
  '/v1alpha/auth_tokens': { body: { uses: 1 } },
  '/v1/images/generations': { kind: 'image', body: { prompt: 'A lighthouse at the coast', n: 1 } },
  '/v1/images/edits': { kind: 'image', body: { prompt: 'Add a ship', images: [{ image_url: image }] } },
  '/v1/videos': {
    kind: 'video',
    body: { prompt: 'Waves at the coast' },
    withImage: { input_reference: { image_url: image } },
  },
  '/v1/contents/generations/tasks': {
    kind: 'video',
    body: { content: [waves] },
    withImage: { content: [waves, { type: 'image_url', image_url: { url: image } }] },
  },
} as const satisfies Readonly<Record<string, Example>>;

/** The same of `multipart/form-data`. */
export const formExamples = {
  '/v1/files': { body: { purpose: 'batch', file: 'batch.jsonl' }, files: ['file'] },
  '/v1/uploads/{upload_id}/parts': { body: { data: 'note.txt' }, files: ['data'] },
  '/v1/audio/transcriptions': { kind: 'transcription', body: { file: 'hello.wav' }, files: ['file'] },
  '/v1/audio/translations': { kind: 'transcription', body: { file: 'hello.wav' }, files: ['file'] },
  '/v1/images/edits': {
    kind: 'image',
    body: { prompt: 'Add a ship', image: 'lighthouse.png' },
    files: ['image'],
  },
  '/v1/videos': {
    kind: 'video',
    body: { prompt: 'Waves at the coast', input_reference: 'lighthouse.png' },
    files: ['input_reference'],
  },
} as const satisfies Readonly<Record<string, Example>>;

export const examples: Readonly<Record<string, Example>> = table(jsonExamples);
export const forms: Readonly<Record<string, Example>> = table(formExamples);
