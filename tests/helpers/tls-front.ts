/** A server that takes TLS connections and passes their bytes to a gateway, for clients that connect with TLS alone. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';

const certificates = new URL('certificates/', import.meta.url);

/** The file of the authority that clients must trust. */
export const caFile = fileURLToPath(new URL('ca.pem', certificates));

export async function startTlsFront(origin: string): Promise<{ readonly origin: string; close(): void }> {
  const port = Number(new URL(origin).port);
  const [key, cert] = ['server.key', 'server.pem'].map((name) => readFileSync(new URL(name, certificates)));
  const server = createServer({ key: key!, cert: cert! }, (client) => {
    const gateway = connect(port, '127.0.0.1');
    for (const socket of [client, gateway]) socket.on('error', () => {});
    client.pipe(gateway).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { origin: `https://localhost:${(server.address() as AddressInfo).port}`, close: () => void server.close() };
}
