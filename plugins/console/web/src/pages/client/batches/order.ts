/** Orders a batch as a program does: the file and the order go to the gateway's own addresses, with a key. */
import { send } from '../../../api/client.ts';
import type { BatchCheck } from '../../../api/types.ts';

/** A refusal of the gateway, with its message. */
export class OrderError extends Error {}

const usualEndpoint = '/v1/chat/completions';
/** The address that all lines call, from the file's first line. */
const firstBytes = 262_144;

export interface CheckedFile extends BatchCheck {
  readonly file: string;
  readonly endpoint: string;
}

/** Uploads a file and checks its lines; nothing is started. */
export async function uploadAndCheck(chosen: File, key: string): Promise<CheckedFile> {
  const endpoint = endpointIn(await chosen.slice(0, firstBytes).text());
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', chosen);
  const { id: file } = await post('/v1/files', key, form);
  return { file, endpoint, ...(await send<BatchCheck>('POST', '/batches/check', { file, endpoint })) };
}

export async function start({ file, endpoint }: CheckedFile, key: string): Promise<string> {
  const order = JSON.stringify({ input_file_id: file, endpoint, completion_window: '24h' });
  return (await post('/v1/batches', key, order)).id;
}

function endpointIn(text: string): string {
  const [line = ''] = text.trimStart().split('\n');
  try {
    const { url } = JSON.parse(line) as { url?: unknown };
    return typeof url === 'string' && url !== '' ? url : usualEndpoint;
  } catch {
    return usualEndpoint;
  }
}

async function post(path: string, key: string, body: FormData | string): Promise<{ readonly id: string }> {
  const answer = await fetch(path, {
    method: 'POST',
    // The key alone authenticates: no cookie of the console is sent.
    credentials: 'omit',
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    },
    body,
  });
  const reply = (await answer.json().catch(() => ({}))) as { id?: string; error?: { message?: string } };
  if (answer.ok && reply.id !== undefined) return { id: reply.id };
  throw new OrderError(reply.error?.message ?? String(answer.status));
}
