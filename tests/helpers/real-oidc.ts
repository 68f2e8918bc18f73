/** A certified OpenID provider (`oidc-provider`) on loopback, which signs in the person that a test names without asking. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RealProvider {
  readonly issuer: string;
  /** Who sits in front of it, with their claims. */
  person: { readonly sub: string } & Record<string, unknown>;
  /** Says no instead of signing in. */
  denies: boolean;
  /** Follows its pages from this address, in a new browser, to where it sends the person back. */
  walk(from: string): Promise<URL>;
  /** Sends what a form of its pages would. */
  submit(page: Response, form: Record<string, string>): Promise<Response>;
  close(): void;
}

interface Koa {
  interactionFinished(incoming: IncomingMessage, outgoing: ServerResponse, result: object): Promise<void>;
  callback(): (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
}

/** Without types of its own. */
const packageName = 'oidc-provider';

/** It knows one client, `gateway`; its page of claims alone has mail and groups, as the specification has it. */
export async function startRealProvider(redirectUri: string, signedOut: string): Promise<RealProvider> {
  // It says at length that it is not set up for production.
  const { info, warn } = console;
  Object.assign(console, { info: () => undefined, warn: () => undefined });
  const { default: Provider } = (await import(packageName)) as {
    default: new (issuer: string, options: object) => Koa;
  };
  const server = createServer((incoming, outgoing) => {
    const isAsking = incoming.url?.startsWith('/interaction/');
    const denied = { error: 'access_denied', error_description: '<b>the person said no</b>' };
    if (!isAsking) return answer(incoming, outgoing);
    const result = made.denies ? denied : { login: { accountId: made.person.sub } };
    void provider.interactionFinished(incoming, outgoing, result);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'gateway',
        client_secret: 'shared',
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [signedOut],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    cookies: { keys: ['a key of this test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => made.person }),
    async loadExistingGrant({ oidc }: { oidc: { client: { clientId: string }; session: { accountId: string } } }) {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  const answer = provider.callback();
  Object.assign(console, { info, warn });
  const cookies = new Map<string, string>();
  const send = async (url: string, init: RequestInit = {}) => {
    const cookie = [...cookies].map(([key, value]) => `${key}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', ...init, headers: { cookie, ...init.headers } });
    for (const line of response.headers.getSetCookie()) {
      const [, key, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      cookies.set(key!, value!);
    }
    return response;
  };
  const made: RealProvider = {
    issuer,
    person: { sub: '' },
    denies: false,
    async walk(from) {
      cookies.clear();
      for (let url = from, steps = 0; steps < 6; steps++) {
        const response = await send(url);
        const next = new URL(response.headers.get('location') ?? '', url);
        if (next.origin !== issuer) return next;
        url = next.href;
      }
      throw new Error('the provider does not lead back');
    },
    async submit(page, form) {
      const text = await page.text();
      const action = /action="([^"]+)"/.exec(text)![1]!;
      const xsrf = /name="xsrf" value="([^"]+)"/.exec(text)![1]!;
      for (const line of page.headers.getSetCookie()) {
        const [, key, value] = /^([^=]+)=([^;]*)/.exec(line)!;
        cookies.set(key!, value!);
      }
      return send(action, { method: 'POST', body: new URLSearchParams({ xsrf, ...form }) });
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return made;
}
