/** The examples of a gateway's description as calls, each with what those before it have made. */
import assert from 'node:assert/strict';
import { wavTone } from '../../plugins/sandbox/endpoints/tones.ts';
import { pngOf } from '../../plugins/sandbox/media/png.ts';

interface Content {
  readonly example?: Record<string, unknown>;
  readonly schema?: { readonly properties?: Record<string, { readonly format?: string }> };
}

export interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: string }[];
  readonly requestBody?: { readonly content: Record<string, Content> };
}

export interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly securitySchemes: Record<string, object>;
    readonly schemas: { readonly Error: { readonly required?: readonly string[] }; readonly ChatRequest: object };
  };
}

export const documentAt = async (origin: string) => (await (await fetch(`${origin}/openapi.json`)).json()) as Document;

/** What the files of forms hold, by the name that the example gives them. */
const line = { custom_id: '1', method: 'POST', url: '/v1/chat/completions' };
const filesOf = (model: string): Readonly<Record<string, Uint8Array<ArrayBuffer>>> => ({
  'batch.jsonl': Buffer.from(
    `${JSON.stringify({ ...line, body: { model, messages: [{ role: 'user', content: 'Hello' }] } })}\n`,
  ),
  'note.txt': Buffer.from('Ships pass at night.'),
  'hello.wav': Buffer.from(wavTone(1)),
  'lighthouse.png': Buffer.from(pngOf('lighthouse', { width: 64, height: 64 })),
});

export const headersOf = ({ parameters = [] }: Operation) =>
  Object.fromEntries(parameters.flatMap((one) => (one.in === 'header' ? [[one.name, one.example!]] : [])));

/** Answers whose id others need, by the name that it has there. */
const names: Readonly<Record<string, string>> = {
  '/v1/files': 'file-example',
  '/v1/conversations': 'conversation_id',
  '/v1/uploads': 'upload_id',
  '/v1/vector_stores': 'vector_store_id',
  '/v1/uploads/{upload_id}/parts': 'part-example',
  '/v1/organization/projects': 'project_id',
};
const first = [...Object.keys(names), '/v1/vector_stores/{vector_store_id}/files'];

export interface Caller {
  readonly origin: string;
  /** `admin` administers the account of `good`. */
  readonly keys: { readonly good: string; readonly admin: string };
}

interface Sent {
  readonly path: string;
  readonly type: string;
  readonly text: string;
}

export const keyAt = ({ keys }: Caller, path: string): string =>
  path.startsWith('/v1/organization/') ? keys.admin : keys.good;

/** Sends every example. `made`: ids by their name in paths and examples; those of what is made are added. */
export async function sendExamples(
  caller: Caller,
  { paths }: Document,
  made: Record<string, string>,
): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  const [chat] = Object.values(paths['/v1/chat/completions']!['post']!.requestBody!.content);
  const files = filesOf(chat!.example!['model'] as string);
  const others = Object.keys(paths).filter((path) => !first.includes(path));
  for (const path of [...first, ...others]) {
    const post = paths[path]?.['post'];
    // One version of generate-content stands for the others.
    if (post === undefined || /^\/v1(?:alpha)?\/models\//.test(path)) continue;
    for (const [type, content] of Object.entries(post.requestBody?.content ?? {})) {
      if (type !== 'application/json' && content.example === undefined) continue;
      assert.ok(content.example, `${path} has no example`);
      const body = JSON.parse(
        JSON.stringify(content.example).replaceAll(/(?:file|part)-example/g, (name) => made[name]!),
      );
      const payload = type === 'application/json' ? JSON.stringify(body) : formOf(body, content, files);
      const text = await postedTo(caller, { path, post, made, payload });
      sent.push({ path, type, text });
      const name = names[path];
      if (name !== undefined) made[name] = (JSON.parse(text) as { id: string }).id;
      if (name === 'file-example') made['file_id'] = made[name]!;
    }
  }
  return sent;
}

function formOf(body: Record<string, string>, { schema }: Content, files: ReturnType<typeof filesOf>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    if (schema?.properties?.[name]?.format === 'binary') form.set(name, new Blob([files[value]!]), value);
    else form.set(name, value);
  return form;
}

interface Posted {
  readonly path: string;
  readonly post: Operation;
  readonly made: Readonly<Record<string, string>>;
  readonly payload: string | FormData;
}

async function postedTo(caller: Caller, { path, post, made, payload }: Posted): Promise<string> {
  const model = post.parameters?.find(({ name }) => name === 'model')?.example;
  const filled = path.replace('{model}', model ?? '').replaceAll(/\{(\w+)\}/g, (_, name: string) => made[name]!);
  const headers: Record<string, string> = { ...headersOf(post), authorization: `Bearer ${keyAt(caller, path)}` };
  if (typeof payload === 'string') headers['content-type'] = 'application/json';
  const answer = await fetch(`${caller.origin}${filled}`, { method: 'POST', headers, body: payload });
  const text = await answer.text();
  assert.ok(answer.ok, `POST ${path}: ${answer.status} ${text.slice(0, 300)}`);
  return text;
}
