/** Whether a Postgres server speaks TLS where its URL asks for it: the driver only says that the connection breaks. */
import { connect } from 'node:net';

/** The values of `sslmode` in a URL. */
export const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

const withinMs = 3_000;
/** SSLRequest: https://www.postgresql.org/docs/current/protocol-message-formats.html */
const request = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const no = 'N'.charCodeAt(0);

export function tlsModeOf(url: string): string | undefined {
  const { searchParams } = new URL(url);
  return searchParams.get('sslmode') ?? searchParams.get('ssl') ?? undefined;
}

/** A sentence where the URL asks for TLS and the server has none; undefined: it is something else. */
export async function missingTls(url: string, name: string): Promise<string | undefined> {
  const mode = tlsModeOf(url);
  if (mode === undefined || ['disable', 'false', 'prefer', 'allow'].includes(mode)) return undefined;
  if (!(await answersNo(url))) return undefined;
  return `The database ${name} speaks no TLS, and storage.database (DATABASE_URL) asks for it with sslmode=${mode}: switch TLS on at the server, or write sslmode=disable where the network is trusted.`;
}

function answersNo(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 5432), timeout: withinMs });
  socket.once('connect', () => socket.write(request));
  socket.once('data', (answer) => resolve(answer[0] === no));
  for (const event of ['error', 'close', 'timeout'] as const) socket.once(event, () => resolve(false));
  return promise.finally(() => socket.destroy());
}
