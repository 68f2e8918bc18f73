/** Sends calls to the gateway's public addresses with a key, and follows orders until they are made. */
import { ApiError } from '../api/client.ts';
import { type ApiCall, keyHeader } from './call.ts';

/** An answer that is not 2xx is thrown as an ApiError. */
export async function sendCall(call: ApiCall, key: string, signal: AbortSignal): Promise<Response> {
  const { headers = {}, body, file } = call;
  return answered(
    await fetch(call.path, {
      method: 'POST',
      signal,
      // The key alone authenticates: no cookie of the console is sent.
      credentials: 'omit',
      headers: {
        ...keyHeader(call, key),
        ...headers,
        ...(file === undefined ? { 'content-type': 'application/json' } : {}),
      },
      body: file instanceof File ? formOf(body, file) : JSON.stringify(body),
    }),
  );
}

function formOf(body: ApiCall['body'], file: File): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) form.set(name, String(value));
  form.set('file', file);
  return form;
}

async function send(path: string, key: string, signal: AbortSignal): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}` };
  return (await answered(await fetch(path, { signal, credentials: 'omit', headers }))).json();
}

async function answered(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  throw errorOf(answer.status, await answer.text().catch(() => ''));
}

/** An error in any of the gateway's shapes; a status names an error without a code. */
function errorOf(status: number, text: string): ApiError {
  let inner: { readonly code?: unknown; readonly message?: unknown } = {};
  try {
    const parsed = JSON.parse(text) as { readonly error?: typeof inner } & typeof inner;
    inner = parsed.error ?? parsed;
  } catch {
    // No JSON: its status says enough.
  }
  const { code, message } = inner;
  const named = typeof code === 'string' && code !== '' ? code : (codes[status] ?? `status_${status}`);
  return new ApiError(status, named, typeof message === 'string' ? message : '');
}

const codes: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  402: 'insufficient_balance',
  404: 'not_found',
  413: 'request_too_large',
  429: 'rate_limited',
  503: 'unavailable',
};

export interface Progress {
  readonly id: string;
  readonly isWaiting: boolean;
  /** 0 where the vendor does not say. */
  readonly percent: number;
}
export interface Made {
  /** Addresses of the files. */
  readonly urls: readonly string[];
}

interface Task {
  readonly id?: string;
  readonly status?: string;
  readonly progress?: number;
  readonly error?: string | { readonly code?: string; readonly message?: string } | null;
  readonly result?: { readonly images?: readonly { readonly url: readonly string[] }[] };
  readonly content?: { readonly video_url?: string };
}

const pauseMs = 1_000;

/** Orders images or a video, and waits for them. `onProgress` is called whenever the task has been asked for. */
export async function order(
  call: ApiCall,
  answer: Response,
  key: string,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Made> {
  const first = (await answer.json()) as Task & { data?: Task | readonly { url?: string; b64_json?: string }[] };
  // Some gateways answer when the images are made.
  if (Array.isArray(first.data))
    return { urls: first.data.map(({ url, b64_json: data }) => url ?? `data:${typeOf(data ?? '')};base64,${data}`) };
  const id = (first.data as Task | undefined)?.id ?? first.id ?? '';
  const taskAt = async (path: string) => {
    const reply = (await send(`${path}/${encodeURIComponent(id)}`, key, signal)) as Task & { data?: Task };
    return reply.data ?? reply;
  };
  for (;;) {
    const task = await taskAt(call.name === 'video' ? '/v1/videos' : '/v1/tasks');
    if (task.error !== undefined && task.error !== null) throw taskError(task.error);
    if (task.status === 'completed')
      // That form of a video's task has the address of its file.
      return { urls: urlsOf(call.name === 'video' ? await taskAt('/v1/contents/generations/tasks') : task) };
    const isWaiting = task.status === 'queued' || task.status === 'submitted';
    onProgress({ id, isWaiting, percent: task.progress ?? 0 });
    await pause(signal);
  }
}

const urlsOf = ({ result, content }: Task): readonly string[] =>
  content?.video_url === undefined ? (result?.images ?? []).flatMap(({ url }) => url) : [content.video_url];

function taskError(error: NonNullable<Task['error']>): ApiError {
  const message = typeof error === 'string' ? error : (error.message ?? '');
  return new ApiError(
    200,
    typeof error === 'string' ? 'generation_failed' : (error.code ?? 'generation_failed'),
    message,
  );
}

const typeOf = (base64: string) =>
  base64.startsWith('/9j/') ? 'image/jpeg' : base64.startsWith('UklGR') ? 'image/webp' : 'image/png';

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, pauseMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
