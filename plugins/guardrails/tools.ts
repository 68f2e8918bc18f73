/** What checks get of the gateway: requests to services and to its own models, credentials of providers, files beside its own. */
import { configFiles } from '../../core/contract/config-files.ts';
import type { Host } from '../../core/contract/contract.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../core/json/json.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { providers } from '../common/domain/upstreams.ts';
import type { CheckTools, Payer, TextsToJudge } from '../common/guardrails/checks.ts';
import { wholeBody } from '../common/wire/answer-body.ts';
import { authorized } from '../common/wire/credentials.ts';

/** The model by which keys of a provider rest: that of no call. */
const noModel = 'guardrail';
const usualForm = { header: 'authorization', value: 'Bearer {key}' };
const mostBytes = 2 ** 20;

export function checkTools(host: Host): CheckTools {
  return {
    clock: host.clock,
    fetch: (address, options) => host.fetch(address, options),
    async authorize(name, request) {
      const provider = host.find(providers)?.find(name);
      if (provider === undefined) throw new Error(`there is no provider "${name}" with a key`);
      const found = host.find(providers)!.acquireKey(name, noModel);
      if (!('key' in found)) throw new Error(`no key of the provider "${name}" can be used now`);
      const { url, headers } = await authorized(
        { ...request, method: 'POST', headers: { ...request.headers } },
        provider.traits.auth ?? usualForm,
        found,
      );
      return { url, headers };
    },
    async read(path) {
      const texts = await host.find(configFiles)?.onDisk([path.replace(/^\.\//, '')]);
      const text = texts?.values().next().value;
      if (text === undefined) throw new Error(`the file ${path} cannot be found beside the gateway file`);
      return text;
    },
  };
}

/** Who pays for the requests of checks, by their ids. They are not checked again. */
export const ownRequests = new Map<string, Payer>();

/** For a request or a session from this address. undefined: it has no account. */
export function askingFor(host: Host, known: Caller | undefined, remoteAddress: string): TextsToJudge['ask'] {
  if (known === undefined) return undefined;
  return async (path: string, body: JsonObject, payer: Payer = 'account') => {
    const answer = await host.perform({
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
      remoteAddress,
      prepare(made) {
        const { id } = made;
        ownRequests.set(id, payer);
        made.defer(() => void ownRequests.delete(id));
        // A key that may call some models only has not asked for this one.
        made.set(caller, { ...known, models: undefined });
      },
    });
    const bytes = await wholeBody(answer.body, mostBytes);
    const json = tryParseBytes(bytes);
    if (answer.status >= 300) throw new Error(`the gateway answered ${answer.status}`);
    if (!isObject(json)) throw new Error('the answer is no JSON object');
    return json;
  };
}
