/** Strict stand-ins on loopback for networks: proxies that record what they are asked, and a vendor with TLS that demands a certificate. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

const pem = (name: string) => readFileSync(new URL(`certificates/${name}`, import.meta.url), 'utf8');

/** PEM texts. */
export const certificates = {
  ca: pem('ca.pem'),
  server: { cert: pem('server.pem'), key: pem('server.key') },
  client: { cert: pem('client.pem'), key: pem('client.key') },
};

export interface StandIn {
  readonly port: number;
  close(): Promise<void>;
}

async function listening(server: Server, host = '127.0.0.1', port = 0): Promise<StandIn> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface VendorCall {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
  readonly remotePort: number | undefined;
}

export interface StandInVendor extends StandIn {
  readonly calls: VendorCall[];
}

/** A whole answer of the chat protocol. */
export const answer = JSON.stringify({
  id: 'one',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** A vendor of the chat protocol. `tls`: with a certificate of the test authority; `demanding`: takes clients with one alone. */
export async function startVendor(
  kind: 'plain' | 'tls' | 'demanding',
  host = '127.0.0.1',
  port = 0,
  answerTo: (path: string, method: string) => string | Buffer = () => answer,
): Promise<StandInVendor> {
  const calls: VendorCall[] = [];
  const serve: RequestListener = (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate?.() ?? {};
    calls.push({
      path: request.url!,
      headers: request.headers,
      client: subject === undefined ? undefined : String(subject.CN),
      remotePort: request.socket.remotePort,
    });
    request.resume();
    request.on('end', () =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(answerTo(new URL(request.url!, 'http://vendor.test').pathname, request.method!)),
    );
  };
  const { ca, server } = certificates;
  const demands = kind === 'demanding' ? { ca, requestCert: true, rejectUnauthorized: true } : {};
  const started = kind === 'plain' ? createServer(serve) : createTlsServer({ ...server, ...demands }, serve);
  return { ...(await listening(started, host, port)), calls };
}

export interface StandInProxy extends StandIn {
  /** `vendor.test:443`, in the order of the requests. */
  readonly requested: string[];
  /** Credentials, in the order of the requests; empty: none. */
  readonly credentials: string[];
  /** Local ports of the connections to vendors. */
  readonly ports: Set<number>;
}

/** Where a proxy leads, whatever it is asked for; and what it does instead. */
export interface ProxyRules {
  readonly to?: number;
  readonly credentials?: string;
  /** Refuses every request, closes before an answer, or never answers. */
  readonly fault?: 'refuse' | 'close' | 'silent';
}

/** A proxy that takes CONNECT alone. */
export async function startHttpProxy(rules: ProxyRules, isTls = false): Promise<StandInProxy> {
  const proxy = { requested: [] as string[], credentials: [] as string[], ports: new Set<number>() };
  const server = isTls ? createTlsServer(certificates.server) : createServer();
  server.on('request', (_request, response) => response.writeHead(405).end());
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => {});
    const given = Buffer.from(
      (request.headers['proxy-authorization'] ?? '').replace(/^Basic /, ''),
      'base64',
    ).toString();
    proxy.requested.push(request.url!);
    proxy.credentials.push(given);
    if (rules.fault === 'silent') return;
    if (rules.fault === 'close') socket.destroy();
    else if (rules.fault === 'refuse') socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    else if (given !== (rules.credentials ?? '')) socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    else {
      const far = join(socket, rules.to!, proxy.ports, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        far.write(head);
      });
    }
  });
  return { ...(await listening(server)), ...proxy };
}

/** RFC 1928 with the methods "none" and "user name and password" (RFC 1929); takes names, and CONNECT alone. */
export async function startSocksProxy(rules: ProxyRules): Promise<StandInProxy> {
  const proxy = { requested: [] as string[], credentials: [] as string[], ports: new Set<number>() };
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    serveSocks(socket, rules, proxy).catch(() => socket.destroy());
  });
  return { ...(await listening(server)), ...proxy };
}

async function serveSocks(socket: Socket, rules: ProxyRules, proxy: Omit<StandInProxy, keyof StandIn>): Promise<void> {
  const read = reader(socket);
  const [version, count] = await read(2);
  const methods = await read(count!);
  const method = rules.credentials === undefined ? 0 : 2;
  if (version !== 5 || !methods.includes(method)) throw new Error('no method in common');
  if (rules.fault === 'silent') return;
  socket.write(Buffer.from([5, method]));
  if (method === 2) {
    const [, length] = await read(2);
    const user = (await read(length!)).toString();
    const password = (await read((await read(1))[0]!)).toString();
    proxy.credentials.push(`${user}:${password}`);
    const isRight = `${user}:${password}` === rules.credentials;
    socket.write(Buffer.from([1, isRight ? 0 : 1]));
    if (!isRight) return void socket.end();
  }
  const [, command, , type] = await read(4);
  const host = type === 3 ? (await read((await read(1))[0]!)).toString() : (await read(type === 1 ? 4 : 16)).join('.');
  proxy.requested.push(`${host}:${(await read(2)).readUInt16BE()}`);
  const reply = (status: number) => socket.write(Buffer.from([5, status, 0, 1, 0, 0, 0, 0, 0, 0]));
  if (command !== 1 || rules.fault === 'refuse') {
    reply(2);
    socket.end();
  } else if (rules.fault === 'close') socket.destroy();
  else join(socket, rules.to!, proxy.ports, () => reply(0));
}

/** Reads exact numbers of bytes; what follows the last one stays in the socket. */
function reader(socket: Socket): (count: number) => Promise<Buffer> {
  return async (count) => {
    for (;;) {
      const bytes = count === 0 ? Buffer.alloc(0) : (socket.read(count) as Buffer | null);
      if (bytes !== null) return bytes;
      await new Promise((resolve, reject) => {
        socket.once('readable', resolve);
        socket.once('close', () => reject(new Error('closed')));
      });
    }
  };
}

function join(near: Socket, port: number, ports: Set<number>, onConnect: () => void): Socket {
  const far = connect(port, '127.0.0.1', () => {
    ports.add(far.localPort!);
    onConnect();
    near.pipe(far).pipe(near);
  });
  far.on('error', () => near.destroy());
  near.on('close', () => far.destroy());
  return far;
}
