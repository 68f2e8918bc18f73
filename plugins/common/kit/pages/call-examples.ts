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
}

const hello = 'Say hello in one word.';
const turns = [{ role: 'user', content: hello }] as const;
const contents = [{ role: 'user', parts: [{ text: hello }] }] as const;
const content = { parts: [{ text: 'A lighthouse at the coast' }] } as const;
const ranked = {
  kind: 'rerank',
  body: { query: 'Where do ships find their way?', documents: ['A lighthouse', 'A meadow'], top_n: 1 },
} as const;
const item = { type: 'message', role: 'user', content: 'Ships pass at night.' } as const;

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
  '/v1/images/generations': { kind: 'image', body: { prompt: 'A lighthouse at the coast', n: 1 } },
  '/v1/videos': { kind: 'video', body: { prompt: 'Waves at the coast' } },
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
