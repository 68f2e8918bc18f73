/** What `connect` asks of a gateway: which models it sells, one call in a program's protocol, and a key by a code (RFC 8628). */
import { GatewayError } from '../../contract/errors.ts';
import type { ClientProgram } from '../../tools/client-programs.ts';
import { didYouMean } from '../../tools/near-names.ts';

export interface Sold {
  readonly id: string;
  readonly context?: number | undefined;
  readonly output?: number | undefined;
}

const callMs = 120_000;

interface Asked {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, text as a form. */
  readonly body?: object | string;
}

interface Reply {
  readonly status: number;
  /** undefined: the answer is no JSON. */
  readonly json: unknown;
}

async function ask(url: string, { key, headers, body }: Asked = {}): Promise<Reply> {
  const answer = await fetch(url, {
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined
        ? {}
        : { 'content-type': typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(callMs),
  }).catch((cause: unknown) => {
    const { code } = ((cause as Error).cause ?? {}) as { code?: string };
    const why = code === undefined ? '' : ` (${code})`;
    throw failed(`${new URL(url).origin} does not answer${why}: is it the gateway's address?`, cause);
  });
  const text = await answer.text();
  try {
    return { status: answer.status, json: JSON.parse(text) };
  } catch {
    return { status: answer.status, json: undefined };
  }
}

export const invalid = (message: string) => new GatewayError('invalid_request', message);
const failed = (message: string, cause?: unknown) => new GatewayError('upstream_failed', message, { cause });

/** A sentence that says what to do, from an error of any protocol; the key is in none. */
function refused(base: string, { status, json }: Reply, key: string): GatewayError {
  const { error, message } = (json ?? {}) as { error?: { message?: string; code?: string }; message?: string };
  const said = String(error?.message ?? message ?? '')
    .replaceAll(key, `${key.slice(0, 6)}…`)
    .slice(0, 500);
  const console = `${base}/console`;
  if (status === 401) return failed(`The gateway does not take this key. Make another one at ${console}/keys. ${said}`);
  if (status === 402) return failed(`There is not enough money for one call: ${console}/wallet. ${said}`);
  if (json === undefined) return failed(`${base} answers ${status} without JSON: is it the gateway's address?`);
  return failed(`The gateway answers ${status}: ${said}`);
}

/** The models of conversations in the gateway's order, with what they take and write. */
export async function soldBy(base: string, key: string): Promise<readonly Sold[]> {
  const plain = await ask(`${base}/v1/models`, { key });
  const { data } = (plain.json ?? {}) as { data?: readonly { id: string }[] };
  if (plain.status !== 200 || !Array.isArray(data)) {
    if (plain.status === 200 || plain.status === 404)
      throw failed(`${base} has no list of models: is it the gateway's address?`);
    throw refused(base, plain, key);
  }
  const detailed = await ask(`${base}/v1beta/models?pageSize=1000`, { key });
  const { models } = (detailed.json ?? {}) as { models?: readonly Detail[] };
  if (detailed.status !== 200 || !Array.isArray(models)) return data.map(({ id }) => ({ id }));
  return models
    .filter(({ supportedGenerationMethods: methods }) => methods?.includes('countTokens'))
    .map(({ name, inputTokenLimit: context, outputTokenLimit: output }) => ({
      id: name.replace(/^models\//, ''),
      context,
      output,
    }));
}

/** An entry of Gemini's list, the one of the three that says which models converse. */
interface Detail {
  readonly name: string;
  readonly inputTokenLimit?: number;
  readonly outputTokenLimit?: number;
  readonly supportedGenerationMethods?: readonly string[];
}

/** The entry of a model that was named; aliases are no entries. Throws for one that is not sold. */
export async function soldAs(base: string, key: string, id: string, sold: readonly Sold[]): Promise<Sold> {
  const found = sold.find((one) => one.id === id);
  if (found !== undefined) return found;
  const reply = await ask(`${base}/v1/models/${encodeURIComponent(id)}`, { key });
  if (reply.status === 200) return { id };
  const ids = sold.map((one) => one.id);
  throw invalid(`The gateway does not sell "${id}"${didYouMean(id, ids)}. It sells ${ids.slice(0, 12).join(', ')} …`);
}

const smallNames = /(?:^|[-_./])(?:mini|nano|haiku|flash|lite|small|tiny|fast)(?:[-_.:/]|$)/i;
/** Coding programs begin with some 20,000 tokens. */
const leastContext = 32_000;

/** Models to begin with, best first: those that the program is made for, the large ones, as the gateway orders them. */
export function candidates({ prefers }: ClientProgram, sold: readonly Sold[]): readonly Sold[] {
  const isOwn = ({ id }: Sold) => prefers !== undefined && new RegExp(prefers, 'i').test(id);
  const rank = (one: Sold) => (isOwn(one) ? 0 : 2) + (smallNames.test(one.id) ? 1 : 0);
  return sold
    .filter(({ context }) => context === undefined || context >= leastContext)
    .toSorted((left, right) => rank(left) - rank(right));
}

/** For side jobs, a small one of the same make, as its name begins; else the model itself. */
export function smallBeside(model: Sold, sold: readonly Sold[]): Sold {
  const make = /^[a-z]+/i.exec(model.id)?.[0];
  const small = sold.filter(({ id }) => smallNames.test(id) && make !== undefined && id.startsWith(make));
  return smallNames.test(model.id) ? model : (small[0] ?? model);
}

const prompt = 'Answer with the word ready.';
const most = 256;

/** One call, as the program asks. Returns the error, or undefined where the model answers. */
export async function tryCall(
  { speaks = 'chat' }: ClientProgram,
  { base, key, model }: { readonly base: string; readonly key: string; readonly model: string },
): Promise<GatewayError | undefined> {
  const messages = [{ role: 'user', content: prompt }];
  const calls = {
    chat: ['/v1/chat/completions', { model, messages, max_completion_tokens: most }],
    responses: ['/v1/responses', { model, input: prompt, max_output_tokens: most, store: false }],
    messages: ['/v1/messages', { model, messages, max_tokens: most }],
    gemini: [
      `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
      { contents: [{ role: 'user', parts: [{ text: prompt }] }] },
    ],
  } as const;
  const [path, body] = calls[speaks];
  const headers = speaks === 'messages' ? { 'anthropic-version': '2023-06-01' } : {};
  const reply = await ask(base + path, { key, body, headers });
  return reply.status === 200 ? undefined : refused(base, reply, key);
}

// ------------------------------------------------------------------------------------------------------------- a key by a code

export interface Waiting {
  readonly program: string;
  readonly machine: string;
  show(address: string, code: string): void;
  wait(ms: number): Promise<void>;
}

interface DeviceCode {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri_complete: string;
  readonly expires_in: number;
  readonly interval?: number;
}

const own = { 'x-console': '1' };

/** A person grants it in the console while this waits. */
export async function keyByCode(base: string, { program, machine, show, wait }: Waiting): Promise<string> {
  const form = (members: Record<string, string>) => String(new URLSearchParams({ client_id: program, ...members }));
  const asked = await ask(`${base}/console/api/connect/code`, { headers: own, body: form({ machine }) });
  const made = asked.json as DeviceCode | undefined;
  if (asked.status === 404 || made === undefined)
    throw invalid(`${base} gives no keys by a code: --key KEY, or the variable GATEWAY_KEY.`);
  if (asked.status !== 200) throw refused(base, asked, '-');
  show(made.verification_uri_complete, made.user_code);
  let intervalMs = (made.interval ?? 5) * 1_000;
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  for (let waitedMs = 0; waitedMs < made.expires_in * 1_000; waitedMs += intervalMs) {
    await wait(intervalMs);
    const body = form({ grant_type, device_code: made.device_code });
    // A line that breaks meanwhile may come back.
    const reply = await ask(`${base}/console/api/connect/token`, { headers: own, body }).catch(() => undefined);
    const { access_token, error } = (reply?.json ?? {}) as { access_token?: string; error?: unknown };
    if (access_token !== undefined) return access_token;
    if (error === 'slow_down' || reply === undefined || reply.status >= 429) intervalMs += 5_000;
    else if (error === 'access_denied') throw invalid('The key was denied in the console. Nothing is written.');
    else if (error !== 'authorization_pending') break;
  }
  throw invalid('The code has expired, or was used elsewhere. Nothing is written: repeat the command for another one.');
}
