/** Ports for servers that must know theirs before they listen. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that Linux (32768), macOS and Windows (49152) give to connections and to servers that ask for any:
 * such a port could be taken between this look and the use of it. A Redis cluster's own traffic takes the port 10,000 above.
 */
const first = 10_000;
const count = 10_000;

// Each process begins elsewhere, and gives no port twice.
let next = Math.floor(Math.random() * count);

/** A port without a listener, on any address. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < count; attempt++) {
    const port = first + (next++ % count);
    const server = createServer();
    try {
      await once(server.listen(port), 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`no port from ${first} to ${first + count - 1} is free`);
}
