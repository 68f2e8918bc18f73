/** What the adapters of outside services share: their settings, and a request that is answered with JSON. */

import { secretText, z } from '../../../core/contract/schema.ts';
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import type { CheckTools, GuardrailCheckType, JudgedText } from '../../common/guardrails/checks.ts';

const mostBytes = 1_000_000;

/** Members of each service's section; `usual`: its public address. */
export const serviceMembers = (usual?: string) => ({
  url: (usual === undefined ? z.url() : z.url().default(usual)).describe(
    'Address of the service, without the path of the operation. Change it for your own region or server.',
  ),
  key: secretText().default('').describe('Key of the service. Empty: none is sent.'),
  allow_private: z
    .boolean()
    .default(false)
    .describe('The service may be in a private network or on this machine. Set it for a server of your own.'),
});

export interface ServiceSettings {
  readonly url: string;
  readonly key: string;
  readonly allow_private: boolean;
}

interface Request {
  /** Behind the settings' address. */
  readonly path: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** A provider of the gateway file by which the request is authorized. */
  readonly provider?: string | undefined;
}

/** Rejects for any answer but a success with a JSON object or list. */
export async function posted(settings: ServiceSettings, tools: CheckTools, request: Request): Promise<unknown> {
  const body = JSON.stringify(request.body);
  const plain = {
    url: settings.url.replace(/\/+$/, '') + request.path,
    headers: { 'content-type': 'application/json', ...request.headers },
    body,
  };
  const { url, headers } = request.provider === undefined ? plain : await tools.authorize(request.provider, plain);
  const answer = await tools.fetch(url, {
    method: 'POST',
    headers,
    body,
    signal: request.signal,
    timeoutMs: 60_000,
    maxBytes: mostBytes,
    allowPrivate: settings.allow_private,
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new Error(`the service answered ${answer.status}`);
  }
  return answer.json();
}

export async function postedObject(...of: Parameters<typeof posted>): Promise<JsonObject> {
  const json = await posted(...of);
  if (!isObject(json)) throw new Error('the service answered with no object');
  return json;
}

export const bearer = (key: string): Record<string, string> => (key === '' ? {} : { authorization: `Bearer ${key}` });

/** The place of what a service has replaced: from the first to the last difference of both texts. */
export function changedPlace(text: number, before: string, after: string, kind: string) {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  let [end, other] = [before.length, after.length];
  while (end > start && other > start && before[end - 1] === after[other - 1]) [end, other] = [end - 1, other - 1];
  // Something was only added: what stands before it is taken along.
  if (end === start) [start, end] = start > 0 ? [start - 1, start] : [0, Math.min(1, before.length)];
  return { text, start, end, kind };
}

/** For services that judge one text at a time. */
export function eachText<T>(
  texts: readonly JudgedText[],
  ask: (text: string, index: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(texts.map(({ text }, index) => ask(text, index)));
}

/** The value among the known ones; anything else is an answer that cannot be read. */
export function oneOf<T extends string>(value: unknown, known: readonly T[], what: string): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new Error(`the service's ${what} cannot be read`);
  return found;
}

/** The types of settings differ: each is parsed by its own schema. */
export const asType = <Config>(type: GuardrailCheckType<Config>): GuardrailCheckType => type as GuardrailCheckType;
