/** A stand-in for the payment service's API: pages, payments, refunds, disputes, and events signed as it signs them. */
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface FakeSession {
  readonly id: string;
  readonly object: 'checkout.session';
  client_reference_id: string | null;
  url: string | null;
  status: 'open' | 'complete' | 'expired';
  payment_status: 'unpaid' | 'paid';
  payment_intent: string | null;
  currency: string;
  amount_total: number;
  readonly success_url: string;
  readonly created: number;
  readonly metadata: Record<string, string>;
}
interface FakeBack {
  readonly id: string;
  readonly payment_intent: string;
  readonly amount: number;
  readonly currency: string;
  status: string;
}

export interface FakeStripe {
  readonly origin: string;
  readonly sessions: Map<string, FakeSession>;
  /** `METHOD path` of each request so far. */
  readonly requested: string[];
  /** Form fields of each page that was asked for. */
  readonly wanted: URLSearchParams[];
  /** What everything is answered with while that is no 0. Clients repeat what got a 500, and take their time for it. */
  down: 0 | 500 | 403;
  /** Waited for before each answer. */
  gate: (request: string) => Promise<void>;
  /** The payer pays. Resolves with the event that tells it. */
  pay(sessionId: string, changes?: Partial<FakeSession>): SignedEvent;
  expire(sessionId: string): SignedEvent;
  refund(sessionId: string, cents: number, status?: string): SignedEvent & { readonly item: FakeBack };
  dispute(sessionId: string, cents: number, status?: string): SignedEvent & { readonly item: FakeBack };
  event(type: string, object: object, options?: { atMs?: number; secret?: string }): SignedEvent;
  close(): Promise<void>;
}
export interface SignedEvent {
  readonly body: string;
  readonly headers: { readonly 'content-type': string; readonly 'stripe-signature': string };
}

export const webhookSecret = 'whsec_test_0123456789abcdef';
export const secretKey = 'sk_test_0123456789abcdef';

/** `now` is the clock by which events are signed. */
export async function startFakeStripe(now: () => number): Promise<FakeStripe> {
  const sessions = new Map<string, FakeSession>();
  const byKey = new Map<string, string>();
  const refunds: FakeBack[] = [];
  const disputes: FakeBack[] = [];
  const name = (prefix: string) => `${prefix}_${randomBytes(8).toString('hex')}`;

  const event: FakeStripe['event'] = (type, object, { atMs = now(), secret = webhookSecret } = {}) => {
    const body = JSON.stringify({ id: name('evt'), object: 'event', type, data: { object } });
    const seconds = Math.floor(atMs / 1_000);
    const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
    return {
      body,
      headers: { 'content-type': 'application/json', 'stripe-signature': `t=${seconds},v1=${signature}` },
    };
  };

  function create(form: URLSearchParams, key: string): FakeSession {
    const known = byKey.get(key);
    if (known !== undefined) return sessions.get(known)!;
    fake.wanted.push(form);
    const id = name('cs_test');
    const session: FakeSession = {
      id,
      object: 'checkout.session',
      client_reference_id: form.get('client_reference_id'),
      url: `https://pay.example/${id}`,
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
      currency: form.get('line_items[0][price_data][currency]')!,
      amount_total: Number(form.get('line_items[0][price_data][unit_amount]')),
      success_url: form.get('success_url')!,
      created: Math.floor(now() / 1_000),
      metadata: Object.fromEntries(
        ['order', 'account'].flatMap((key) =>
          [[key, form.get(`metadata[${key}]`) ?? '']].filter(([, text]) => text !== ''),
        ),
      ),
    };
    sessions.set(id, session);
    byKey.set(key, id);
    return session;
  }

  function answer(method: string, url: URL, form: URLSearchParams, key: string): object | undefined {
    const payment = url.searchParams.get('payment_intent');
    const of = <Item extends { payment_intent: string | null }>(items: readonly Item[]) => ({
      object: 'list',
      has_more: false,
      url: url.pathname,
      data: items.filter((each) => each.payment_intent === payment),
    });
    if (url.pathname === '/v1/refunds') return of(refunds);
    if (url.pathname === '/v1/disputes') return of(disputes);
    const since = url.searchParams.get('created[gte]');
    if (since !== null)
      return {
        ...of([]),
        data: [...sessions.values()].filter(({ created, status }) => created >= Number(since) && status === 'complete'),
      };
    if (url.pathname === '/v1/checkout/sessions')
      return method === 'POST' ? create(form, key) : of([...sessions.values()]);
    return sessions.get(url.pathname.replace('/v1/checkout/sessions/', ''));
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, 'http://fake');
    const line = `${request.method} ${url.pathname}`;
    fake.requested.push(line);
    const form = new URLSearchParams(await textOf(request));
    await fake.gate(line);
    const isAdmitted = request.headers.authorization === `Bearer ${secretKey}`;
    const reported =
      fake.down > 0 ? undefined : answer(request.method!, url, form, String(request.headers['idempotency-key']));
    const status = fake.down > 0 ? fake.down : !isAdmitted ? 401 : reported === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json', 'request-id': name('req') });
    const error = { error: { type: 'api_error', message: 'not to be shown to anybody' } };
    response.end(JSON.stringify(status === 200 ? reported : error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const back = (list: FakeBack[], prefix: string, type: string) =>
    function take(sessionId: string, cents: number, status: string) {
      const { payment_intent: payment, currency } = sessions.get(sessionId)!;
      const item: FakeBack = { id: name(prefix), payment_intent: payment!, amount: cents, currency, status };
      list.push(item);
      return { ...event(type, item), item };
    };
  const takeRefund = back(refunds, 're', 'refund.created');
  const takeDispute = back(disputes, 'du', 'charge.dispute.created');

  const fake: FakeStripe = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions,
    requested: [],
    wanted: [],
    down: 0,
    gate: async () => {},
    pay: (sessionId, changes = {}) => {
      const session = sessions.get(sessionId)!;
      Object.assign(session, { status: 'complete', payment_status: 'paid', payment_intent: name('pi'), url: null });
      return event('checkout.session.completed', Object.assign(session, changes));
    },
    expire: (sessionId) => {
      const session = Object.assign(sessions.get(sessionId)!, { status: 'expired', url: null });
      return event('checkout.session.expired', session);
    },
    refund: (sessionId, cents, status = 'succeeded') => takeRefund(sessionId, cents, status),
    dispute: (sessionId, cents, status = 'needs_response') => takeDispute(sessionId, cents, status),
    event,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
